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

/**
 * A version of a table for scans whose metadata has the position of each row in its file.
 *
 * Delta leaves `_metadata.row_index` out unless the table has deletion vectors or row ids.
 */
final class NumberedRows(snapshot: Snapshot) extends SnapshotDescriptor with HasPaths {
  override def deltaLog: DeltaLog = snapshot.deltaLog
  override def version: Long = snapshot.version
  override def metadata: Metadata = snapshot.metadata
  override val protocol: Protocol =
    snapshot.protocol.merge(Protocol(3, 7).withFeature(DeletionVectorsTableFeature))
  override def logPath: Path = deltaLog.logPath
  override def dataPath: Path = deltaLog.dataPath
  override protected[delta] def numOfFilesIfKnown: Option[Long] = None
  override protected[delta] def sizeInBytesIfKnown: Option[Long] = None

  /** The live rows of these files. */
  def rowsOf(files: Seq[AddFile]): DataFrame = deltaLog.createDataFrame(this, files, actionTypeOpt = Some("Optimize"))
}
