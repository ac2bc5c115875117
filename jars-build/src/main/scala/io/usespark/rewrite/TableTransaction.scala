package io.usespark

import java.net.URI
import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, SparkSession, classic}
import org.apache.spark.sql.delta.{DeltaCommitTag, DeltaOperations, RowTracking}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.usespark.{FileWriter, RewriteTransaction}
import org.apache.spark.sql.usespark.FileRuns

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
 * Every step runs with `session` active.
 */
final class TableTransaction(session: SparkSession, table: DeltaTableV2)
    extends FileWriter(
      ActiveSession.within(session)(new RewriteTransaction(table.deltaLog, table.catalogTable, table.update())),
      options = None,
      constraints = Nil
    ) {
  private var inputs: Seq[AddFile] = Nil

  override def state: TableState = new TableState(transaction.snapshot)

  override protected def step[T](body: => T): T = ActiveSession.within(session)(body)

  /** Has to be called before `write`. */
  override protected def setConfiguration(configuration: Map[String, String]): Unit =
    transaction.updateMetadata(transaction.metadata.copy(configuration = configuration))

  /** Takes the files with these identities; returns how many of them are live in the transaction's snapshot. */
  def take(paths: ju.List[String], deletionVectors: ju.List[String]): Int = step {
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
  def read(): DataFrame = step {
    val rows = transaction.deltaLog.createDataFrame(transaction.snapshot, inputs, actionTypeOpt = Some("Optimize"))
    RowTracking.preserveRowTrackingColumns(rows, transaction.snapshot)
  }

  /**
   * The rows of the files taken, one Spark partition per run. A run is a list of paths as in the log, and each file is in
   * one run at most: those in none are not read. To be called once, since it changes how the session reads files.
   */
  def readRuns(runs: ju.List[ju.List[String]]): DataFrame = step {
    val places = runs.asScala.zipWithIndex.flatMap { case (files, run) =>
      files.asScala.zipWithIndex.map { case (file, place) => file -> (run, place) }
    }.toMap
    val chosen = inputs.filter(file => places.contains(file.path))
    val log = transaction.deltaLog
    val rows = log.createDataFrame(transaction.snapshot, chosen, actionTypeOpt = Some("Optimize"))
    val placeOf = chosen.map(file => new Path(log.dataPath, new Path(new URI(file.path))) -> places(file.path)).toMap
    FileRuns.read(RowTracking.preserveRowTrackingColumns(rows, transaction.snapshot), runs.size, placeOf)
  }

  /**
   * Commits `files`, AddFile rows of live files with other metadata, and what was configured. A `large` commit streams
   * them; Delta cannot rebase it on a concurrent commit, so that any concurrent commit is a conflict.
   */
  def restate(files: DataFrame, operation: String, parameters: ju.Map[String, String], large: Boolean): Long = step {
    import org.apache.spark.sql.delta.implicits._
    val changed = files.as[AddFile]
    val ours = UseOperation(operation, parameters.asScala.toMap, inPlace = true)
    if (large) {
      val streamed = changed.toLocalIterator().asScala
      val classicSession = session.asInstanceOf[classic.SparkSession]
      transaction.commitLarge(classicSession, streamed, None, ours, Map.empty, Map.empty)._1
    } else {
      val collected = changed.collect().toSeq
      transaction.trackFilesRead(collected)
      transaction.commit(collected, ours)
    }
  }

  /** Removes the files taken, adds the written ones with their tags (by path), in one commit; returns its version. */
  def commit(
      operation: String,
      parameters: ju.Map[String, String],
      tagsByPath: ju.Map[String, ju.Map[String, String]]
  ): Long = step {
    setTags(tagsByPath)
    val now = System.currentTimeMillis()
    val removes = inputs.map(_.removeWithTimestamp(now, dataChange = false))
    val snapshot = transaction.snapshot
    val commitTags =
      if (RowTracking.isEnabled(snapshot.protocol, snapshot.metadata))
        Map(DeltaCommitTag.PreservedRowTrackingTag.key -> "true")
      else Map.empty[String, String]
    val actions = addedFiles.map(_.copy(dataChange = false)) ++ removes
    transaction.commit(actions, UseOperation(operation, parameters.asScala.toMap), commitTags)
  }

  /** Commits what was configured and no files; returns the version. It reads nothing, so that it conflicts with metadata only. */
  def commitProperties(operation: String, parameters: ju.Map[String, String]): Long = step {
    transaction.commit(Nil, UseOperation(operation, parameters.asScala.toMap))
  }

  /** Deletes what was written, after a commit that is known not to have happened; returns the files left behind. */
  def discard(): Int = step(transaction.deleteWritten((_, _) => ()))
}
