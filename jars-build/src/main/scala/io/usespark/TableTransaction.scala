package io.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{Column, DataFrame, SparkSession, classic}
import org.apache.spark.sql.delta.{DeltaCommitTag, DeltaOperations, RowTracking}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.usespark.RewriteTransaction

/** Our entry in `DESCRIBE HISTORY`; the parameters, the event among them, come from Python. */
final case class UseOperation(operation: String, entries: Map[String, String], inPlace: Boolean = false)
    extends DeltaOperations.OperationWithPredicates(operation, Nil) {
  override val parameters: Map[String, Any] = super.parameters ++ entries
  override val operationMetrics: Set[String] = Set("numFiles", "numOutputRows", "numOutputBytes")
  override def checkAddFileWithDeletionVectorStatsAreNotTightBounds: Boolean = true
  override val isInPlaceFileMetadataUpdate: Option[Boolean] = Some(inPlace)
  override def canChangePartitionColumns: Boolean = false
}

/**
 * One Delta transaction that replaces files by files with the same rows, step by step as Python asks.
 *
 * Every step runs with `session` active, since Delta reads its settings from the active session.
 */
final class TableTransaction(session: SparkSession, table: DeltaTableV2) {
  private val mapper = new ObjectMapper()
  private val transaction = active(new RewriteTransaction(table.deltaLog, table.catalogTable, table.update()))
  private var inputs: Seq[AddFile] = Nil
  private var written: Seq[AddFile] = Nil

  def version: Long = transaction.readVersion
  def state: TableState = new TableState(transaction.snapshot)

  /** Takes the files with these identities; returns how many of them are live in the transaction's snapshot. */
  def take(paths: ju.List[String], deletionVectors: ju.List[String]): Int = active {
    val wanted = paths.asScala.zip(deletionVectors.asScala).toMap
    val files = transaction.snapshot.allFiles
    inputs = files
      .filter(files.col("path").isInCollection(paths))
      .collect()
      .toSeq
      .filter(file => wanted.get(file.path).contains(file.getDeletionVectorUniqueId.getOrElse("")))
    transaction.trackFilesRead(inputs)
    inputs.size
  }

  /** The rows of the files taken, deletion vectors applied, row ids kept where the table has them. */
  def read(): DataFrame = active {
    val rows = transaction.deltaLog.createDataFrame(transaction.snapshot, inputs, actionTypeOpt = Some("Optimize"))
    RowTracking.preserveRowTrackingColumns(rows, transaction.snapshot)
  }

  /** Adds entries to the table's configuration within this commit; to be called before `write`. */
  def configure(entries: ju.Map[String, String]): Unit = active {
    val metadata = transaction.metadata
    transaction.updateMetadata(metadata.copy(configuration = metadata.configuration ++ entries.asScala))
  }

  /** Removes entries from the table's configuration within this commit. */
  def unconfigure(keys: ju.List[String]): Unit = active {
    val metadata = transaction.metadata
    transaction.updateMetadata(metadata.copy(configuration = metadata.configuration -- keys.asScala))
  }

  /**
   * Commits `files`, AddFile rows of live files with other metadata, and what was configured. A `large` commit streams
   * them; Delta cannot rebase it on a concurrent commit, which makes it fail as a lost race.
   */
  def restate(files: DataFrame, operation: String, parameters: ju.Map[String, String], large: Boolean): Long = active {
    import org.apache.spark.sql.delta.implicits._
    val adds = files.as[AddFile]
    val ours = UseOperation(operation, parameters.asScala.toMap, inPlace = true)
    if (large) {
      val streamed = adds.toLocalIterator().asScala
      val classicSession = session.asInstanceOf[classic.SparkSession]
      transaction.commitLarge(classicSession, streamed, None, ours, Map.empty, Map.empty)._1
    } else {
      val collected = adds.collect().toSeq
      transaction.trackFilesRead(collected)
      transaction.commit(collected, ours)
    }
  }

  /**
   * Writes the rows, one file per partition of `rows` (and table partition); JSON of path, size and blocks per file.
   * `cube` and `weight` place a row as it is stored.
   */
  def write(rows: DataFrame, cube: Column, weight: Column): String = active {
    written = transaction.tracking(cube, weight)(transaction.writeFiles(rows, None, true, Nil)).collect {
      case file: AddFile => file
    }
    val files = mapper.createArrayNode()
    written.foreach(file =>
      transaction.putBlocks(file, files.addObject().put("path", file.path).put("size", file.size))
    )
    files.toString
  }

  /** The rows as they were written, for counting them before they are committed. */
  def readWritten(): DataFrame = active(transaction.deltaLog.createDataFrame(transaction.snapshot, written))

  /** Removes the files taken, adds the written ones with their tags (by path), in one commit; returns its version. */
  def commit(
      operation: String,
      parameters: ju.Map[String, String],
      tagsByPath: ju.Map[String, ju.Map[String, String]]
  ): Long = active {
    val adds = written.map { file =>
      val tags = Option(tagsByPath.get(file.path)).map(_.asScala.toMap).getOrElse(Map.empty)
      file.copy(tags = file.tagsOrEmpty ++ tags, dataChange = false)
    }
    val now = System.currentTimeMillis()
    val removes = inputs.map(_.removeWithTimestamp(now, dataChange = false))
    val snapshot = transaction.snapshot
    val commitTags =
      if (RowTracking.isEnabled(snapshot.protocol, snapshot.metadata))
        Map(DeltaCommitTag.PreservedRowTrackingTag.key -> "true")
      else Map.empty[String, String]
    transaction.commit(adds ++ removes, UseOperation(operation, parameters.asScala.toMap), commitTags)
  }

  /** Deletes what was written, after a commit that is known not to have happened; returns the files left behind. */
  def discard(): Int = active {
    val root = transaction.deltaLog.dataPath
    val files = root.getFileSystem(transaction.deltaLog.newDeltaHadoopConf())
    written.count { file =>
      try !files.delete(new Path(root, new Path(new java.net.URI(file.path))), false)
      catch { case NonFatal(_) => true }
    }
  }

  private def active[T](body: => T): T = {
    val before = SparkSession.getActiveSession
    SparkSession.setActiveSession(session)
    try body
    finally before.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession)
  }
}
