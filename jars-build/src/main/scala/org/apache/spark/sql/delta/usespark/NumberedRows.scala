package org.apache.spark.sql.delta.usespark

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.delta.{DeletionVectorsTableFeature, DeltaLog, Snapshot, SnapshotDescriptor}
import org.apache.spark.sql.delta.actions.{AddFile, Metadata, Protocol}

/** What Delta 4.2 and later ask of a version of a table. */
trait HasPaths {
  def logPath: Path
  def dataPath: Path
}

/** A version of a table as a scan of some files sees it, which may have other metadata or protocol than the log. */
final private[usespark] class ScannedTable(
    override val deltaLog: DeltaLog,
    override val version: Long,
    override val metadata: Metadata,
    override val protocol: Protocol
) extends SnapshotDescriptor
    with HasPaths {
  override def logPath: Path = deltaLog.logPath
  override def dataPath: Path = deltaLog.dataPath
  override protected[delta] def numOfFilesIfKnown: Option[Long] = None
  override protected[delta] def sizeInBytesIfKnown: Option[Long] = None
}

/** Scans whose metadata has the position of each row in its file. */
object NumberedRows {

  /**
   * The live rows of some files.
   *
   * Delta leaves `_metadata.row_index` out unless the table has deletion vectors or row ids.
   */
  def of(snapshot: Snapshot, files: Seq[AddFile]): DataFrame = {
    val protocol = snapshot.protocol.merge(Protocol(3, 7).withFeature(DeletionVectorsTableFeature))
    val table = new ScannedTable(snapshot.deltaLog, snapshot.version, snapshot.metadata, protocol)
    snapshot.deltaLog.createDataFrame(table, files, actionTypeOpt = Some("Optimize"))
  }
}
