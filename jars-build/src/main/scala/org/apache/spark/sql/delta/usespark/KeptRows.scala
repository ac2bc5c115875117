package org.apache.spark.sql.delta.usespark

import java.net.URI

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.usespark.IndexedRelation
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, classic}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.{DataFrameUtils, DeltaColumnMapping}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex
import org.apache.spark.sql.delta.metric.IncrementMetric
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.usespark.FileRuns

/**
 * The rows that a statement writes: those that it changes, and the others of the files that it rewrites.
 *
 * @param replacesFiles whether they replace all rows of the files that they come from, which deletion vectors avoid
 */
final class KeptRows(
    indexed: IndexedTransaction,
    rows: DataFrame,
    replacesFiles: Boolean,
    constraints: Seq[Constraint]
) extends IndexedRows(indexed, rows, None, constraints) {
  private val plan = rows.queryExecution.analyzed

  private val sources: Seq[AddFile] = plan
    .collectLeaves()
    .collect {
      case IndexedRelation(index: TahoeBatchFileIndex) if index.deltaLog.isSameLogAs(indexed.deltaLog) => index
    }
    .flatMap(_.addFiles)
    .distinctBy(_.path)

  // The files of the Spark partitions of `apart`.
  private var filesApart: Seq[Path] = Nil

  override def facts: String = {
    val mapper = new ObjectMapper()
    val json = mapper.createObjectNode()
    json.put("location", indexed.deltaLog.dataPath.toString).put("replaces_files", replacesFiles)
    json.put("is_row_by_row", KeptRows.isRowByRow(plan))
    json.set[JsonNode]("kept_columns", mapper.valueToTree(keptColumns.toArray))
    json.set[JsonNode]("paths", mapper.valueToTree(sources.map(_.path).asJava))
    json.toString
  }

  /**
   * The rows, each Spark partition those of one file, or of a part of a file that is larger than `mostBytes`. Only for
   * rows that come from their files one by one.
   *
   * @param session a session of its own, whose settings change
   */
  def apart(session: classic.SparkSession, mostBytes: Long): DataFrame = step {
    // A relation is scanned with the settings of its own session. The option makes the plan another one: relations that
    // differ in their session are equal.
    val own = plan.transform { case scan: LogicalRelation =>
      scan.relation match {
        case files: HadoopFsRelation =>
          scan.copy(relation = files.copy(options = files.options + ("use.apart" -> "true"))(session))
        case _ => scan
      }
    }
    val (byFile, paths) = FileRuns.apart(DataFrameUtils.ofRows(session, own), mostBytes)
    filesApart = paths
    byFile
  }

  /** The file, as in the log, of each Spark partition of `apart`. */
  def partitionFiles: Array[String] = {
    val root = indexed.deltaLog.dataPath
    val pathOf = sources.map(file => new Path(root, new Path(new URI(file.path))) -> file.path).toMap
    filesApart.map(pathOf).toArray
  }

  /**
   * Physical names of the columns whose values stay as they are, if all rows of the files stay, each in its partition; else
   * none. So an UPDATE of other columns moves no row in the index.
   */
  private def keptColumns: Seq[String] = {
    val metadata = indexed.metadata
    // With a change feed, a further column says which rows are no rows of the table.
    val areRowsOfTable = plan.output.map(_.name).sorted == metadata.schema.fieldNames.sorted.toSeq
    val kept = plan.output.filter(KeptRows.isKept(plan, _)).map(_.name).toSet
    if (!areRowsOfTable || !KeptRows.keepsRows(plan) || !metadata.partitionColumns.forall(kept)) Nil
    else metadata.schema.fields.filter(field => kept(field.name)).toSeq.map(DeltaColumnMapping.getPhysicalName)
  }

  /** The tags of the files that the statement rewrites, by path, as JSON. */
  def sourceTags: String =
    new ObjectMapper().writeValueAsString(sources.map(file => file.path -> file.tagsOrEmpty.asJava).toMap.asJava)

  /** The rows of the files that the statement rewrites, as they were before. */
  def sourceRows: DataFrame = indexed.deltaLog.createDataFrame(indexed.snapshot, sources)
}

object KeptRows {

  /** Whether the plan has each row of its scan once. */
  private def keepsRows(plan: LogicalPlan): Boolean = isRowByRow(plan) && !plan.exists {
    case filter: Filter =>
      filter.condition match {
        // Delta counts rows by a filter that all of them pass.
        case IncrementMetric(Literal(true, _), _) => false
        case _ => true
      }
    case _: Generate | _: Expand => true
    case _ => false
  }

  /** Whether a column of the plan's output has the values of the column of the same name in the scan. */
  private def isKept(plan: LogicalPlan, column: Attribute): Boolean =
    origin(plan, column).exists(_.name == column.name)

  @tailrec
  private def origin(plan: LogicalPlan, column: Attribute): Option[Attribute] = plan match {
    case project: Project =>
      project.projectList.find(_.exprId == column.exprId).flatMap(unchanged) match {
        case Some(below) => origin(project.child, below)
        case None => None
      }
    case leaf: LogicalRelation => leaf.output.find(_.exprId == column.exprId)
    case other if other.children.size == 1 => origin(other.children.head, column)
    case _ => None
  }

  /** The column that an expression returns in any case: UPDATE makes `IF(condition, a, a)` of a column that it leaves. */
  private def unchanged(expression: Expression): Option[Attribute] = expression match {
    case attribute: Attribute => Some(attribute)
    case alias: Alias => unchanged(alias.child)
    case If(_, changed, original) =>
      for (a <- unchanged(changed); b <- unchanged(original) if a.exprId == b.exprId) yield a
    case _ => None
  }

  /** Whether each row comes from one row of a scan, so that rows of a file stay together and in order. */
  private def isRowByRow(plan: LogicalPlan): Boolean = plan.collectLeaves().size == 1 && !plan.exists {
    case _: Project | _: Filter | _: Generate | _: Expand | _: SubqueryAlias | _: LogicalRelation =>
      false
    case _ => true
  } && !plan.exists(_.expressions.exists(_.exists {
    case scalar: ScalarSubquery => scalar.isCorrelated
    case _: SubqueryExpression => true
    case _ => false
  }))
}

/** The metrics that count rows while a query computes them, and their values before it. */
final class RowCounters private (values: Map[SQLMetric, Long]) {

  /** Forgets what a failed attempt has counted. */
  def restore(): Unit = values.foreach { case (metric, value) => metric.set(value) }
}

object RowCounters {
  def of(rows: DataFrame): RowCounters = {
    val metrics = rows.queryExecution.analyzed
      .flatMap(_.expressions)
      .flatMap(_.collect { case counter: IncrementMetric =>
        counter.metric
      })
    new RowCounters(metrics.map(metric => metric -> metric.value).toMap)
  }
}
