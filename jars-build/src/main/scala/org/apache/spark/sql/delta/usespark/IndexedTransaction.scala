package org.apache.spark.sql.delta.usespark

import java.{util => ju}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.usespark.{Operation, Python, TableState}
import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.commands.cdc.CDCReader
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * A Delta transaction whose new rows are laid out and tagged by Python.
 *
 * Every write of Delta ends in `writeFiles`: Python gets the rows there, hands them back in the order that the index
 * wants, to be written by Delta as usual, and tags the files. So constraints, generated and identity columns, change
 * data, column mapping and row tracking stay Delta's.
 *
 * @param settings table properties that the write brings along, as Python named them
 * @param mode `append`, `replace` when every row of the table is replaced, `partial` when some are
 * @param metricsOf takes the metrics when another transaction commits the files
 */
class IndexedTransaction(
    log: DeltaLog,
    table: Option[CatalogTable],
    base: Snapshot,
    settings: ju.Map[String, String],
    mode: String,
    metricsOf: Option[OptimisticTransaction] = None
) extends OptimisticTransaction(log, table, base)
    with WritingTransaction {
  private var current: Option[IndexedRows] = None

  /** Id that Python gave the write, None when nothing was tagged. */
  private[usespark] var writeId: Option[String] = None

  /** Rows that come with write options are new; Delta rewrites kept rows without options, and those stay as they are. */
  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] =
    if (current.isDefined || isOptimize || options.isEmpty) super.writeFiles(data, options, isOptimize, constraints)
    else {
      val write = new IndexedRows(this, data.toDF(), options, constraints)
      current = Some(write)
      try {
        Python.text(Operation.WRITE_FILES, Map("write" -> write))
        write.files
      } finally current = None
    }

  /** Sets the table's properties in this commit, also after files were written: none of them is about files. */
  private[usespark] def setConfiguration(configuration: Map[String, String]): Unit =
    updateMetadataInternal(metadata.copy(configuration = configuration), ignoreDefaultProperties = true)

  private[usespark] def facts(rows: DataFrame): String = {
    val mapper = new ObjectMapper()
    val plan = rows.asInstanceOf[classic.Dataset[_]].queryExecution.optimizedPlan
    val json = mapper.createObjectNode()
    json.put("location", log.dataPath.toString).put("mode", mode)
    json.put("plan_bytes", plan.stats.sizeInBytes.min(BigInt(Long.MaxValue)).toLong)
    json.put("repeatable", IndexedTransaction.repeatable(plan))
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
  def discard(): Unit = deleteWritten { (file, error) =>
    logWarning(s"${file.path} was not committed and is left to vacuum", error)
  }
}

object IndexedTransaction {

  /** Whether the plan gives the same rows each time, at about the cost of reading them. */
  def repeatable(plan: LogicalPlan): Boolean = plan.deterministic && !plan.exists {
    case _: LogicalRelation | _: LocalRelation | _: Range | _: Project | _: Filter | _: Union | _: SubqueryAlias =>
      false
    case _: Repartition | _: RepartitionByExpression | _: OneRowRelation | _: InMemoryRelation => false
    case _ => true
  }
}

/** The rows of one write: Python lays them out, has them written, and tags the files. */
final class IndexedRows(
    indexed: IndexedTransaction,
    val rows: DataFrame,
    options: Option[DeltaOptions],
    constraints: Seq[Constraint]
) extends FileWriter(indexed, options, constraints) {

  /** The table that the rows join: properties and schema as the commit will have them, files as they are now. */
  override def state: TableState = new TableState(indexed.snapshot, indexed.metadata)

  /** The facts about the rows and the write that Python needs, as JSON. */
  def facts: String = indexed.facts(rows)

  override protected def setConfiguration(configuration: Map[String, String]): Unit =
    indexed.setConfiguration(configuration)

  /** Sets the tags of the files, by path, and notes the id of the write. */
  def tag(tagsByPath: ju.Map[String, ju.Map[String, String]], writeId: String): Unit = {
    indexed.writeId = Some(writeId)
    setTags(tagsByPath)
  }
}
