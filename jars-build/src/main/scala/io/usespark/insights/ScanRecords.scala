package io.usespark

import scala.collection.mutable

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper

/** The user and the duration of a query. */
final case class QueryFacts(
    applicationId: String,
    executionId: Long,
    queryId: Option[String],
    statementId: Option[String],
    user: String,
    sessionKind: String,
    finishedAt: Long,
    durationMillis: Long,
    withLiterals: Boolean
)

/** One scan of a table, as a line of JSON, with the bytes that it read and that each step of the selection skipped. */
final class ScanRecord(val location: String, val line: String, val readBytes: Long, val skippedBytes: Map[String, Long])

/** The scans of tables with records of queries, as lines of JSON that Python's `consumption` reads. */
object ScanRecords extends AdaptiveSparkPlanHelper {
  private val Property = "use.insights.consumption.enabled"

  private val mapper = new ObjectMapper()

  /**
   * Whether the queries that read a table are recorded: it says so, or else its database or the session. Where none
   * says anything, they are if the service chooses the index columns from them.
   */
  def isEnabled(session: SparkSession, configuration: Map[String, String], database: Option[String]): Boolean = {
    def inForce(key: String) = configuration.get(key).orElse(InheritedProperties.value(session, database, key))
    inForce(Property) match {
      case Some(text) => text.trim.equalsIgnoreCase("true")
      case None => IndexedRelation.isAutomatic(inForce)
    }
  }

  /** The records of an executed plan; starts no job. */
  def of(plan: SparkPlan, query: QueryFacts): Seq[ScanRecord] = {
    val scans = collectWithSubqueries(plan) { case scan: FileSourceScanExec => scan }
      .flatMap(scan => ScanCounts.ofScan(scan).map(scan -> _))
      .filter { case (scan, counts) =>
        val configuration = counts.index.preparedScan.scannedSnapshot.metadata.configuration
        isEnabled(scan.session, configuration, scan.tableIdentifier.flatMap(InheritedProperties.databaseOf))
      }
    if (scans.isEmpty) Nil
    else {
      val filters = collectWithSubqueries(plan) { case filter: FilterExec => filter }
      scans.zipWithIndex.map { case ((scan, counts), position) =>
        val skipped = skippedBy(counts)
        val text = line(scan, counts, skipped, filters, position, query)
        val bytes = skipped.map { case (step, count) => step -> count.bytes }.toMap
        new ScanRecord(counts.index.path.toString, text, counts.read.bytes, bytes)
      }
    }
  }

  private def skippedBy(counts: ScanCounts): Seq[(String, FileCount)] = {
    val (selected, nothing) = (counts.partitions - counts.statistics, FileCount(0, 0))
    counts.total.map(total => "partitions" -> (total - counts.partitions)).toSeq ++ Seq(
      "statistics" -> (if (counts.isLimited) nothing else selected),
      "limit" -> (if (counts.isLimited) selected else nothing),
      "cubes" -> (counts.statistics - counts.cubes),
      "weights" -> (counts.cubes - counts.weights),
      "joins" -> (counts.weights - counts.joins)
    )
  }

  private def line(
      scan: FileSourceScanExec,
      counts: ScanCounts,
      skipped: Seq[(String, FileCount)],
      filters: Seq[FilterExec],
      position: Int,
      query: QueryFacts
  ): String = {
    val snapshot = counts.index.preparedScan.scannedSnapshot
    val record = mapper.createObjectNode()
    record
      .put("table_id", snapshot.metadata.id)
      .put("version", snapshot.version)
      .put("finished_at", query.finishedAt)
      .put("user_name", query.user)
      .put("session_kind", query.sessionKind)
      .put("application_id", query.applicationId)
      .put("execution_id", query.executionId)
      .put("scan", position)
      .put("duration_ms", query.durationMillis)
    query.queryId.foreach(record.put("query_id", _))
    query.statementId.foreach(record.put("statement_id", _))
    val conditions = (scan.partitionFilters ++ scan.dataFilters).distinct.diff(conditionsOfJoins(scan))
    putFilters(record, conditions, query.withLiterals)
    sampledFraction(conditions).foreach(record.put("sample_fraction", _))
    def put(name: String, count: FileCount): Unit =
      record.putObject(name).put("files", count.files).put("bytes", count.bytes)
    counts.total.foreach(put("table_size", _))
    skipped.foreach { case (step, count) => put(s"skipped_by_$step", count) }
    put("read", counts.read)
    val jobs = scan.getTagValue(JoinOutcome.Tag).getOrElse(Nil).flatMap(_.job)
    put("read_for_joins", FileCount(jobs.map(_.files).sum, jobs.map(_.bytes).sum))
    for (rows <- scan.metrics.get("numOutputRows").map(_.value)) {
      record.put("rows_read", rows)
      // The uppermost filter above the scan; Spark removes one whose conditions the partitions fulfil.
      val above = filters.filter(filter => reads(filter, scan)).flatMap(_.metrics.get("numOutputRows")).map(_.value)
      record.put("rows_kept", (rows +: above).min)
    }
    mapper.writeValueAsString(record)
  }

  private def conditionsOfJoins(scan: FileSourceScanExec): Seq[Expression] = scan.relation.location match {
    case joined: JoinFileIndex => joined.filters
    case _ => Nil
  }

  /** Whether a filter is above a scan, with nothing in between that makes or removes rows but filters. */
  @annotation.tailrec
  private def reads(node: SparkPlan, scan: FileSourceScanExec): Boolean = node match {
    case same if same eq scan => true
    case _: FilterExec | _: ProjectExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec =>
      reads(node.children.head, scan)
    case _ => false
  }

  /** Whether a condition is Delta's own: rows that deletion vectors hide are filtered by a column that Delta adds. */
  private def isInternal(condition: Expression): Boolean =
    condition.references.exists(_.name.startsWith("__delta_internal_"))

  /** The share of all weights that the conditions of a query ask for; None if they ask for none. */
  private def sampledFraction(conditions: Seq[Expression]): Option[Double] = {
    val bounds = conditions.flatMap(IndexedRelation.weightBounds)
    val first = bounds.collect { case ("first", weight) => weight }.maxOption.getOrElse(Int.MinValue)
    val last = bounds.collect { case ("last", weight) => weight }.minOption.getOrElse(Int.MaxValue)
    Option.when(bounds.nonEmpty)(math.max(0L, last.toLong - first + 1) / (1L << 32).toDouble)
  }

  private def putFilters(record: ObjectNode, conditions: Seq[Expression], withLiterals: Boolean): Unit = {
    val seen = mutable.LinkedHashSet[(String, String, Option[String])]()
    conditions
      .filterNot(condition => IndexedRelation.hasHash(condition) || isInternal(condition))
      .foreach(FilterColumns.collect(_, withLiterals, seen))
    // Spark derives IS NOT NULL from every other condition on a column.
    val others = seen.collect { case (column, operator, _) if operator != "IS NOT NULL" => column }
    val array = record.putArray("filters")
    seen.filter { case (column, operator, _) => operator != "IS NOT NULL" || !others(column) }.foreach {
      case (column, operator, literal) =>
        val filter = array.addObject().put("column", column).put("operator", operator)
        literal.foreach(filter.put("literal", _))
    }
  }
}

/** The columns of conditions, each with the operator that it is compared by. */
object FilterColumns {
  private val MaxLiteral = 200
  private val Alternative = "OR "
  private val Computed = "f() "

  /** Adds the columns of a condition; the operator says where a comparison alone does not decide about a row. */
  def collect(
      condition: Expression,
      withLiterals: Boolean,
      into: mutable.Set[(String, String, Option[String])],
      prefix: String = ""
  ): Unit = {
    def add(column: String, operator: String, values: Seq[Expression] = Nil): Unit = {
      val literal =
        if (withLiterals && values.nonEmpty) Some(values.map(_.sql).mkString(", ").take(MaxLiteral)) else None
      into += ((column, prefix + operator, literal))
    }
    def addAll(operator: String): Unit = columnsOf(condition).foreach(add(_, operator))
    condition match {
      case And(left, right) => Seq(left, right).foreach(collect(_, withLiterals, into, prefix))
      case Or(left, right) => Seq(left, right).foreach(collect(_, withLiterals, into, Alternative))
      case Not(EqualTo(Column(name), value)) => add(name, "!=", Seq(value))
      case Not(In(Column(name), values)) => add(name, "NOT IN", values)
      case Not(IsNull(Column(name))) => add(name, "IS NOT NULL")
      case Not(child) => collect(child, withLiterals, into, prefix)
      case Compared(Column(name), symbol, value) => add(name, symbol, Seq(value))
      case comparison: BinaryComparison => addAll(Computed + comparison.symbol)
      case In(Column(name), values) => add(name, "IN", values)
      case InSet(Column(name), _) => add(name, "IN")
      case IsNull(Column(name)) => add(name, "IS NULL")
      case IsNotNull(Column(name)) => add(name, "IS NOT NULL")
      case StartsWith(Column(name), value) => add(name, "LIKE", Seq(value))
      case other => addAll(other.prettyName)
    }
  }

  private def columnsOf(expression: Expression): Seq[String] =
    expression.collect { case attribute: Attribute => attribute.name }.distinct

  /** A column or a field of one, also where Spark has cast it. */
  private object Column {
    def unapply(expression: Expression): Option[String] = expression match {
      case attribute: Attribute => Some(attribute.name)
      case field: GetStructField => unapply(field.child).map(_ + "." + field.childSchema(field.ordinal).name)
      case cast: Cast => unapply(cast.child)
      case _ => None
    }
  }
}
