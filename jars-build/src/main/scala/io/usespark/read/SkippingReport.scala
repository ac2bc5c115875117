package io.usespark

import scala.collection.mutable
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.{DataFrame, Dataset, SparkSession, classic}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, ParsedStatement, Sample}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}

/** The facts from which Python explains which files a query skips, and which conditions do not help. */
final class SkippingReport private (execution: QueryExecution) {
  private val plan = execution.optimizedPlan
  private val scanned = mutable.ArrayBuffer[Snapshot]()

  /** The facts. */
  val json: String = {
    val report = new ObjectMapper().createObjectNode()
    val samples = report.putArray("samples")
    plan.collectWithSubqueries { case sample: Sample => sample }.foreach(ReadReport.put(samples.addObject(), _))
    val scans = report.putArray("scans")
    val joins = JoinReport.simulated(execution)
    SkippingReport.visit(plan, mutable.Set.empty) { (index, filters) =>
      scanned += index.preparedScan.scannedSnapshot
      SkippingReport.put(scans.addObject(), index, filters, joins.next(index))
    }
    report.toString
  }

  /** The live files of the version that a scan reads: the columns of Delta's AddFile. */
  def files(scan: Int): DataFrame = scanned(scan).allFiles.toDF()
}

object SkippingReport {

  /** The report of a DataFrame. */
  def of(data: Dataset[_]): SkippingReport =
    new SkippingReport(data.asInstanceOf[classic.Dataset[_]].queryExecution)

  /**
   * The report of a query. Two things keep commands from being executed: the grammar of queries has none, and
   * the plan skips commands. EXECUTE IMMEDIATE, for example, is executed while it is analyzed.
   */
  def ofQuery(session: SparkSession, text: String): SkippingReport = {
    val state = session.asInstanceOf[classic.SparkSession].sessionState
    val execution = state.executePlan(state.sqlParser.parseQuery(text), CommandExecutionMode.SKIP)
    execution.assertAnalyzed()
    new SkippingReport(execution)
  }

  /** The name of the command that a text is; null if it is a query. Throws if it cannot be parsed. */
  def command(session: SparkSession, text: String): String = {
    val parser = session.asInstanceOf[classic.SparkSession].sessionState.sqlParser
    val plan = parser.parsePlan(text)
    val statement = plan.collectFirst { case part @ (_: Command | _: ParsedStatement) => part.nodeName }
    val isQuery = statement.isEmpty &&
      (try { parser.parseQuery(text); true }
      catch { case NonFatal(_) => false })
    if (isQuery) null else statement.getOrElse(plan.nodeName)
  }

  /** Each scan once, with all filters directly above it. Spark executes equal subqueries once. */
  private def visit(plan: LogicalPlan, subqueries: mutable.Set[LogicalPlan])(
      scan: (PreparedDeltaFileIndex, Seq[Expression]) => Unit
  ): Unit = {
    def visitSubqueries(node: LogicalPlan): Unit =
      node.subqueries.filter(subquery => subqueries.add(subquery.canonicalized)).foreach(visit(_, subqueries)(scan))
    plan match {
      case PhysicalOperation(_, filters, IndexedRelation(index: PreparedDeltaFileIndex)) =>
        scan(index, filters)
        plan.foreach(visitSubqueries)
      case other =>
        other.children.foreach(visit(_, subqueries)(scan))
        visitSubqueries(other)
    }
  }

  private def put(
      json: ObjectNode,
      index: PreparedDeltaFileIndex,
      filters: Seq[Expression],
      joins: JoinsOfScan
  ): Unit = {
    val (prepared, snapshot) = (index.preparedScan, index.preparedScan.scannedSnapshot)
    ReadReport.put(json.putObject("counts"), index, joins)
    json.put("configuration", IndexedRelation.json(snapshot.metadata.configuration))
    json.put("schema", snapshot.metadata.schemaString)
    val kept = prepared.files.map(_.path).toSet
    val revisions = json.putArray("revisions")
    ScanCounts.candidates(index).groupBy(revision).foreach { case (id, files) =>
      val read = FileCount.of(files.filter(file => kept(file.path)))
      revisions.addObject().put("revision", id).put("files", read.files).put("bytes", read.bytes)
    }
    val conditions = new ConditionReport(snapshot.metadata)
    val nodes = json.putArray("conditions")
    filters.foreach { filter =>
      val used =
        if (prepared.partitionFilters.contains(filter)) "partitions"
        else if (prepared.dataFilters.contains(filter) || prepared.partitionLikeDataFilters.contains(filter))
          "statistics"
        else ""
      nodes.add(conditions.node(filter).put("used_by", used))
    }
  }

  /** The tag of the revision; empty for an unindexed file. */
  private def revision(file: AddFile): String =
    Option(file.tags).filter(_.contains("blocks")).flatMap(_.get("revision")).getOrElse("")
}
