package org.apache.spark.sql.delta.usespark

import java.{util => ju}

import scala.annotation.tailrec
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.usespark.{IndexedRelation, Operation, Python, TableState, UseException}
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.commands.cdc.CDCReader
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.schema.DeltaInvariantViolationException
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * A Delta transaction whose rows are laid out and tagged by Python.
 *
 * Every write of Delta ends in `writeFiles`: Python gets the rows there, hands them back in the order that the index
 * wants, to be written by Delta as usual, and tags the files. So constraints, generated and identity columns, change
 * data, column mapping and row tracking stay Delta's.
 *
 * Rows that come with write options are new. Rows without are those that a statement changes, with the others of their
 * files; if they cannot be laid out, Delta writes them as usual, and the log says why.
 *
 * @param settings table properties that the write brings along, as Python named them
 * @param mode `append`, `replace` when every row of the table is replaced, `partial` when some are
 * @param metricsOf takes the metrics when another transaction commits the files
 * @param needsLayout whether a write of new rows fails if they cannot be laid out
 */
class IndexedTransaction(
    log: DeltaLog,
    table: Option[CatalogTable],
    base: Snapshot,
    settings: ju.Map[String, String],
    mode: String,
    metricsOf: Option[OptimisticTransaction] = None,
    needsLayout: Boolean = true
) extends OptimisticTransaction(log, table, base)
    with WritingTransaction {

  /** Id that Python gave the write, None when nothing was tagged. */
  private[usespark] var writeId: Option[String] = None

  /** How many files have lost their index, as Delta has written them without a layout, by reason. */
  private[usespark] var plainFiles: Map[String, Int] = Map.empty

  /** Whether a statement's rows replace all rows of the files that they come from. */
  protected def replacesFiles: Boolean = true

  protected def laysOutNewRows: Boolean = true

  /** What becomes of the rows of the table when new ones are written. */
  protected def modeOf(options: DeltaOptions): String = mode

  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] = {
    def plain: Seq[FileAction] = super.writeFiles(data, options, isOptimize, constraints)
    if (isOptimize) plain
    else if (options.isDefined) {
      val rows = new IndexedRows(this, data.toDF(), options, constraints)
      def ask = Python.text(Operation.WRITE_FILES, Map("write" -> rows))
      if (laysOutNewRows) laidOut(rows, needsLayout)(ask)(plain) else plain
    } else if (!IndexedRelation.isIndexed(metadata.configuration)) plain
    else {
      val rows = new KeptRows(this, data.toDF(), replacesFiles, constraints)
      laidOut(rows, isNeeded = false)(Python.text(Operation.WRITE_KEPT_ROWS, Map("write" -> rows)))(plain)
    }
  }

  /** The files of rows that Python has written; `plain` where it has refused them, as `ask` tells by a reason. */
  private def laidOut(rows: IndexedRows, isNeeded: Boolean)(
      ask: => Option[String]
  )(plain: => Seq[FileAction]): Seq[FileAction] = {
    val (counters, former, files) = (RowCounters.of(rows.rows), metadata, writtenCount)
    val refusal =
      try ask
      catch {
        case NonFatal(error) if !isNeeded && !IndexedTransaction.endsStatement(error) =>
          logWarning(s"The rows of a statement on ${log.dataPath} were not laid out", error)
          Some(UseException.codeOf(error))
      }
    refusal.fold(rows.files) { reason =>
      counters.restore()
      deleteFrom(files)
      if (metadata != former) updateMetadataInternal(former, ignoreDefaultProperties = true)
      val written = plain
      val count = written.count(_.isInstanceOf[AddFile])
      if (count > 0 && reason.nonEmpty) plainFiles += reason -> (plainFiles.getOrElse(reason, 0) + count)
      written
    }
  }

  /** Sets the table's properties in this commit, also after files were written: none of them is about files. */
  private[usespark] def setConfiguration(configuration: Map[String, String]): Unit =
    updateMetadataInternal(metadata.copy(configuration = configuration), ignoreDefaultProperties = true)

  private[usespark] def facts(rows: DataFrame, options: Option[DeltaOptions]): String = {
    val mapper = new ObjectMapper()
    val query = rows.asInstanceOf[classic.Dataset[_]].queryExecution
    val plan = query.optimizedPlan
    val json = mapper.createObjectNode()
    json.put("location", log.dataPath.toString).put("mode", options.fold(mode)(modeOf))
    json.put("plan_bytes", plan.stats.sizeInBytes.min(BigInt(Long.MaxValue)).toLong)
    json.put("repeatable", IndexedTransaction.repeatable(plan) && !IndexedTransaction.isObserved(query))
    json.put("change_type", rows.columns.find(_ == CDCReader.CDC_TYPE_COLUMN_NAME).orNull)
    json.set[JsonNode]("settings", mapper.valueToTree(settings))
    json.toString
  }

  /** High-water marks of identity columns that the files used; the transaction that commits them has to keep them. */
  private[usespark] def identityMarks: Seq[(String, Object)] =
    updatedIdentityHighWaterMarks.toSeq.map { case (name, mark) => name -> Long.box(mark) }

  override def registerSQLMetrics(spark: SparkSession, metrics: Map[String, SQLMetric]): Unit = {
    super.registerSQLMetrics(spark, metrics)
    metricsOf.foreach(_.registerSQLMetrics(spark, metrics))
  }

  /** Deletes what was written, when it is certain that no commit names it. */
  def discard(): Unit = deleteFrom(0)

  private def deleteFrom(kept: Int): Unit = deleteWritten(
    (file, error) => logWarning(s"${file.path} was not committed and is left to vacuum", error),
    kept
  )
}

object IndexedTransaction {

  /** Whether a statement ends with this error: somebody stops it, or its rows break a rule of the table. */
  @tailrec def endsStatement(error: Throwable): Boolean = error match {
    case null => false
    case _: DeltaInvariantViolationException | _: InterruptedException => true
    case spark: SparkThrowable if spark.getCondition == "SPARK_JOB_CANCELLED" => true
    case other => endsStatement(other.getCause)
  }

  /** Whether the plan gives the same rows each time, at about the cost of reading them. */
  def repeatable(plan: LogicalPlan): Boolean = plan.deterministic && !plan.exists {
    case _: LogicalRelation | _: LocalRelation | _: Range | _: Project | _: Filter | _: Union | _: SubqueryAlias =>
      false
    case _: Repartition | _: RepartitionByExpression | _: OneRowRelation | _: InMemoryRelation => false
    case _ => true
  }

  /** Whether the rows' user observes metrics on them. */
  private[usespark] def isObserved(query: QueryExecution): Boolean =
    query.logical.exists(_.isInstanceOf[CollectMetrics])
}

/** The rows of one write: Python lays them out, has them written, and tags the files. */
class IndexedRows(
    indexed: IndexedTransaction,
    val rows: DataFrame,
    options: Option[DeltaOptions],
    constraints: Seq[Constraint]
) extends FileWriter(indexed, options, constraints) {

  /** The table that the rows join: properties and schema as the commit will have them, files as they are now. */
  override def state: TableState = new TableState(indexed.snapshot, indexed.metadata, indexed.catalogTable)

  /**
   * The rows in Spark's cache, for queries of another session, which unpersist them.
   *
   * Spark reports the metrics that a user observes after an execution in the user's own session. So observed rows are
   * computed in one.
   */
  def cachedIn(reader: classic.SparkSession): DataFrame = {
    val query = rows.asInstanceOf[classic.Dataset[_]].queryExecution
    def cached: DataFrame = IndexedWrite.batch(rows, reader).persist()
    if (!IndexedTransaction.isObserved(query)) cached
    else
      SQLExecution.withNewExecutionId(query, Some("useIndexedWrite")) {
        val computed = cached
        try computed.count()
        catch {
          case error: Throwable =>
            computed.unpersist()
            throw error
        }
        computed
      }
  }

  /** The facts about the rows and the write that Python needs, as JSON. */
  def facts: String = indexed.facts(rows, options)

  override protected def setConfiguration(configuration: Map[String, String]): Unit =
    indexed.setConfiguration(configuration)

  /** Sets the tags of the files, by path, and notes the id of the write. */
  def tag(tagsByPath: ju.Map[String, ju.Map[String, String]], writeId: String): Unit = {
    indexed.writeId = Some(writeId)
    setTags(tagsByPath)
  }
}
