package io.usespark

import java.net.URI
import java.{util => ju}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{DataFrame, SparkSession, classic}
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.delta.{DeltaColumnMapping, DeltaCommitTag, DeltaOperations, RowTracking}
import org.apache.spark.sql.delta.actions.{AddFile, FileAction}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.cdc.CDCReader
import org.apache.spark.sql.delta.usespark.{FileWriter, NumberedRows, RecentFiles, RewriteTransaction}
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.types.{StringType, TimestampType}
import org.apache.spark.sql.usespark.FileRuns

/** What Delta 4.2 and later ask of an operation. */
trait ChecksPartitions {
  def canChangePartitionColumns: Boolean
}

/** Our entry in `DESCRIBE HISTORY`; the parameters, the event among them, come from Python. */
final case class UseOperation(operation: String, entries: Map[String, String], inPlace: Boolean = false)
    extends DeltaOperations.OperationWithPredicates(operation, Nil)
    with ChecksPartitions {
  override val parameters: Map[String, Any] = super.parameters ++ entries
  override val operationMetrics: Set[String] = Set("numFiles", "numOutputRows", "numOutputBytes")
  override def checkAddFileWithDeletionVectorStatsAreNotTightBounds: Boolean = true
  override val isInPlaceFileMetadataUpdate: Option[Boolean] = Some(inPlace)
  override def canChangePartitionColumns: Boolean = false
}

/**
 * One Delta transaction that replaces files by files with the same rows, or with some of them, step by step as Python asks.
 *
 * Every step runs with `session` active.
 */
final class TableTransaction private (session: SparkSession, table: DeltaTableV2, rewrite: RewriteTransaction)
    extends FileWriter(rewrite, options = None, constraints = Nil)
    with Logging {

  def this(session: SparkSession, table: DeltaTableV2) = this(
    session,
    table,
    ActiveSession.within(session)(new RewriteTransaction(table.deltaLog, table.catalogTable, table.update()))
  )

  private var inputs: Seq[AddFile] = Nil
  private var dependencies: Seq[AddFile] = Nil
  private var changeFiles: Seq[FileAction] = Nil

  override def state: TableState = new TableState(transaction.snapshot, transaction.catalogTable)

  override protected def step[T](body: => T): T = ActiveSession.within(session)(body)

  /** Has to be called before `write`. */
  override protected def setConfiguration(configuration: Map[String, String]): Unit =
    transaction.updateMetadata(transaction.metadata.copy(configuration = configuration))

  /** Puts a text into the names of all files that are written from now on. */
  def mark(text: String): Unit = transaction.mark = Some(text)

  /** Has the commit wait before its last check for conflicts; see `RewriteTransaction.hold`. */
  def hold(wait: ju.function.LongUnaryOperator): Unit = rewrite.hold = Some(wait)

  /** Takes the files with these identities; returns how many of them are live in the transaction's snapshot. */
  def take(paths: ju.List[String], deletionVectors: ju.List[String]): Int = step {
    inputs = live(paths, deletionVectors)
    inputs.size
  }

  /**
   * Depends on further files, which the commit leaves as they are: it conflicts with a commit that changes one of them.
   * Returns how many of them are live.
   */
  def dependOn(paths: ju.List[String], deletionVectors: ju.List[String]): Int = step {
    dependencies = live(paths, deletionVectors)
    dependencies.size
  }

  private def live(paths: ju.List[String], deletionVectors: ju.List[String]): Seq[AddFile] = {
    val vectorByPath = paths.asScala.zip(deletionVectors.asScala).toMap
    lazy val allFiles = transaction.snapshot.allFiles
    val liveFiles = new RecentFiles(transaction.snapshot)
      .live(paths.asScala)
      .getOrElse(allFiles.filter(allFiles.col("path").isInCollection(paths)).collect().toSeq)
      .filter(file => vectorByPath.get(file.path).contains(file.getDeletionVectorUniqueId.getOrElse("")))
    transaction.trackFilesRead(liveFiles)
    liveFiles
  }

  /** The rows of the files taken, deletion vectors applied, row ids kept where the table has them. */
  def read(): DataFrame = step(withRowIds(rowsOf(inputs)))

  /**
   * The same for some of the files taken, by path as in the log. A `numbered` scan has the position of each row in its
   * file, `_metadata.row_index`.
   */
  def scan(paths: ju.List[String], numbered: Boolean): DataFrame = step {
    val chosen = paths.asScala.toSet
    val files = inputs.filter(file => chosen(file.path))
    withRowIds(if (numbered) NumberedRows.of(transaction.snapshot, files) else rowsOf(files))
  }

  /**
   * Rows of the files taken and of the files written, by the times that partition the table: microseconds, as JSON. Rows
   * are -1 if the log does not know them. Empty if no column of type TIMESTAMP partitions the table.
   */
  def rowsByTime(): String = step {
    val zone = Some(session.conf.get("spark.sql.session.timeZone"))
    val times = transaction.metadata.partitionSchema.filter(_.dataType == TimestampType)
    def key(file: AddFile): String = times
      .map { field =>
        val text = file.partitionValues.getOrElse(DeltaColumnMapping.getPhysicalName(field), null)
        Cast(Literal.create(text, StringType), TimestampType, zone, EvalMode.LEGACY).eval()
      }
      .mkString(",")
    def rows(files: Seq[AddFile]): Map[String, Long] = files.groupMapReduce(key)(
      _.numLogicalRecords.getOrElse(-1L)
    )((one, other) => if (one < 0 || other < 0) -1L else one + other)
    val (taken, written) =
      if (times.isEmpty) (Map.empty[String, Long], Map.empty[String, Long]) else (rows(inputs), rows(addedFiles))
    val json = new ObjectMapper().createObjectNode()
    (taken.keySet ++ written.keySet).foreach { time =>
      json.putArray(time).add(taken.getOrElse(time, 0L)).add(written.getOrElse(time, 0L))
    }
    json.toString
  }

  /** The rows of the files that it depends on, without row ids. */
  def readDependencies(): DataFrame = step(rowsOf(dependencies))

  private def rowsOf(files: Seq[AddFile]): DataFrame =
    transaction.deltaLog.createDataFrame(transaction.snapshot, files, actionTypeOpt = Some("Optimize"))

  private def withRowIds(rows: DataFrame): DataFrame =
    RowTracking.preserveRowTrackingColumns(rows, transaction.snapshot)

  /**
   * Rows of `scan`, one Spark partition per run. A run is a list of paths as in the log, and each file of the scan is in
   * one run. To be called once, since it changes how the session reads files.
   */
  def inRuns(rows: DataFrame, runs: ju.List[ju.List[String]]): DataFrame = step {
    val root = transaction.deltaLog.dataPath
    val placeOf = runs.asScala.zipWithIndex.flatMap { case (files, run) =>
      files.asScala.zipWithIndex.map { case (file, place) => new Path(root, new Path(new URI(file))) -> (run, place) }
    }.toMap
    FileRuns.read(rows, runs.size, placeOf)
  }

  /** Writes rows that the commit deletes to the table's change feed, if it has one. */
  def writeDeleted(rows: DataFrame): Unit = step {
    if (CDCReader.isCDCEnabledOnTable(transaction.metadata, session)) {
      val changes = rows.withColumn(CDCReader.CDC_TYPE_COLUMN_NAME, lit(CDCReader.CDC_TYPE_DELETE_STRING))
      changeFiles = transaction.writeFiles(changes, None, isOptimize = false, Nil)
    }
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
      transaction.checkTable()
      transaction.commitLarge(classicSession, streamed, None, ours, Map.empty, Map.empty)._1
    } else {
      val collected = changed.collect().toSeq
      transaction.trackFilesRead(collected)
      transaction.commit(collected, ours)
    }
  }

  /**
   * Removes the files taken, adds the written ones with their tags (by path), in one commit; returns its version.
   *
   * @param dataChange whether the rows differ: readers of changes then see the commit
   */
  def commit(
      operation: String,
      parameters: ju.Map[String, String],
      tagsByPath: ju.Map[String, ju.Map[String, String]],
      dataChange: Boolean
  ): Long = step {
    setTags(tagsByPath)
    val now = System.currentTimeMillis()
    val removes = inputs.map(_.removeWithTimestamp(now, dataChange = dataChange))
    val snapshot = transaction.snapshot
    val commitTags =
      if (RowTracking.isEnabled(snapshot.protocol, snapshot.metadata))
        Map(DeltaCommitTag.PreservedRowTrackingTag.key -> "true")
      else Map.empty[String, String]
    val actions = addedFiles.map(_.copy(dataChange = dataChange)) ++ changeFiles ++ removes
    // A commit that fails may have happened nevertheless.
    try transaction.commit(actions, UseOperation(operation, parameters.asScala.toMap), commitTags)
    finally if (dataChange) recache()
  }

  /** Makes cached plans over the table stale, in the session of the table: ours has settings of its own for reading. */
  private def recache(): Unit =
    try {
      val reader = table.spark.asInstanceOf[classic.SparkSession]
      reader.sharedState.cacheManager.recacheByPlan(reader, table.toLogicalRelation)
    } catch {
      case NonFatal(error) => logWarning(s"Cached rows of ${transaction.deltaLog.dataPath} may be outdated", error)
    }

  /** Commits what was configured and no files; returns the version. It reads nothing, so that it conflicts with metadata only. */
  def commitProperties(operation: String, parameters: ju.Map[String, String]): Long = step {
    transaction.commit(Nil, UseOperation(operation, parameters.asScala.toMap))
  }

  /** Deletes what was written, after a commit that is known not to have happened; returns the files left behind. */
  def discard(): Int = step(transaction.deleteWritten((_, _) => ()))
}
