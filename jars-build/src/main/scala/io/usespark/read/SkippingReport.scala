package io.usespark

import scala.collection.mutable
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.{Dataset, SparkSession, classic}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, ParsedStatement, Sample}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.functions.{coalesce, col, count_if, get_json_object, lit}

/** The facts from which Python explains which files a query skips, and which conditions do not help. */
object SkippingReport {
  private val mapper = new ObjectMapper()

  /** The report of a DataFrame, as JSON. */
  def of(data: Dataset[_]): String = of(data.asInstanceOf[classic.Dataset[_]].queryExecution.optimizedPlan)

  /**
   * The report of a query, as JSON. Two things keep commands from being executed: the grammar of queries has none, and
   * the plan skips commands. EXECUTE IMMEDIATE, for example, is executed while it is analyzed.
   */
  def ofQuery(session: SparkSession, text: String): String = {
    val state = session.asInstanceOf[classic.SparkSession].sessionState
    val execution = state.executePlan(state.sqlParser.parseQuery(text), CommandExecutionMode.SKIP)
    execution.assertAnalyzed()
    of(execution.optimizedPlan)
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

  private def of(plan: LogicalPlan): String = {
    val report = mapper.createObjectNode()
    val samples = report.putArray("samples")
    plan.collectWithSubqueries { case sample: Sample => sample }.foreach(ReadReport.put(samples.addObject(), _))
    val scans = report.putArray("scans")
    visit(plan, mutable.Set.empty)((index, filters) => put(scans.addObject(), index, filters))
    report.toString
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

  private def put(json: ObjectNode, index: PreparedDeltaFileIndex, filters: Seq[Expression]): Unit = {
    val (prepared, snapshot) = (index.preparedScan, index.preparedScan.scannedSnapshot)
    ReadReport.put(json.putObject("counts"), index)
    json.put("configuration", IndexedRelation.json(snapshot.metadata.configuration))
    json.put("schema", snapshot.metadata.schemaString)
    val kept = prepared.files.map(_.path).toSet
    val candidates = index match {
      case blocks: BlockFileIndex => blocks.candidates
      case _ => prepared.files
    }
    val revisions = json.putArray("revisions")
    candidates.groupBy(revision).foreach { case (id, files) =>
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
    val missing = json.putObject("without_statistics")
    withoutStatistics(snapshot, conditions.columns).foreach { case (name, files) => missing.put(name, files) }
  }

  /** The tag of the revision; empty for an unindexed file. */
  private def revision(file: AddFile): String =
    Option(file.tags).filter(_.contains("blocks")).flatMap(_.get("revision")).getOrElse("")

  /** For each column, the number of files without a minimum that hold a value; one Spark job over the list of files. */
  private def withoutStatistics(snapshot: Snapshot, columns: Seq[(String, Seq[String])]): Seq[(String, Long)] =
    if (columns.isEmpty) Nil
    else {
      def value(kind: String, path: Seq[String]) =
        get_json_object(col("stats"), path.map(_.replace("'", "\\'")).mkString(s"$$.$kind['", "']['", "']"))
      val counts = columns.map { case (_, path) =>
        val rows = get_json_object(col("stats"), "$.numRecords")
        val onlyNulls = coalesce(value("nullCount", path) === rows, lit(false))
        count_if(value("minValues", path).isNull && !onlyNulls)
      }
      val row = snapshot.allFiles.toDF().select(counts: _*).head()
      columns.map(_._1).zipWithIndex.map { case (name, i) => name -> row.getLong(i) }
    }
}
