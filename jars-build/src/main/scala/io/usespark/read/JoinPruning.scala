package io.usespark

import java.util.IdentityHashMap

import scala.util.{Left, Right, Try}
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Expression, PlanExpression}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.usespark.SideKeys

/**
 * Lets the scan on one side of a join skip files, row groups and pages without any key of the other side.
 *
 * Adaptive execution calls it for each stage before the stage starts, after the sides that it broadcasts are complete.
 * The join stays as it is, so whatever is read too much changes nothing; where anything fails, nothing is skipped.
 */
case class JoinPruning(session: SparkSession) extends Rule[SparkPlan] with Logging {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Python.attached || !plan.exists(_.isInstanceOf[BroadcastHashJoinExec]) || !JoinPruning.isEnabled(session))
      plan
    else
      try {
        val narrowed = new IdentityHashMap[FileSourceScanExec, FileSourceScanExec]()
        for ((scan, keys) <- JoinedScans.of(plan, intoStages = false))
          // One node at two places would need files for both.
          if (narrowed.containsKey(scan)) narrowed.put(scan, scan)
          else narrowed.put(scan, NarrowedScan(session, scan, keys.filter(_.refusal.isEmpty), broadcast).result)
        plan.transformUp { case scan: FileSourceScanExec =>
          val result = narrowed.getOrDefault(scan, scan)
          // Spark keeps the node that it has if the new one equals it.
          if (result == scan) result.getTagValue(JoinOutcome.Tag).foreach(scan.setTagValue(JoinOutcome.Tag, _))
          result
        }
      } catch {
        case NonFatal(error) =>
          logWarning("Files were not skipped by the keys of joins.", error)
          plan
      }

  private def broadcast(key: JoinKey): Option[Array[Any]] =
    SideKeys.broadcast(key.side, key.keys, key.position, JoinPruning.maxKeys(session))
}

object JoinPruning {
  private val Enabled = "spark.qbeast.use.joins.enabled"
  private val MaxKeys = "spark.qbeast.use.joins.keys"
  private val MinBytes = "spark.qbeast.use.joins.bytes"

  def isEnabled(session: SparkSession): Boolean = !session.conf.get(Enabled, "true").trim.equalsIgnoreCase("false")

  /** Of more rows of the other side, no ranges are made. */
  def maxKeys(session: SparkSession): Long = number(session, MaxKeys, 50000)(_.toLong)

  /** A job reads the statistics of a version only for a scan of at least as many bytes. */
  def minBytes(session: SparkSession): Long = number(session, MinBytes, 256L << 20)(JavaUtils.byteStringAsBytes)

  private def number(session: SparkSession, name: String, default: Long)(parse: String => Long): Long =
    session.conf.getOption(name).flatMap(text => Try(parse(text.trim)).toOption).getOrElse(default)
}

/**
 * One scan and the keys of joins that its rows have to match.
 *
 * @param values the values of a key on the other side; None if they are too many.
 */
final private[usespark] case class NarrowedScan(
    session: SparkSession,
    scan: FileSourceScanExec,
    keys: Seq[JoinKey],
    values: JoinKey => Option[Array[Any]]
) {
  import NarrowedScan._

  /** The scan with fewer files, or the same. */
  def result: FileSourceScanExec = scan.relation.location match {
    case index: PreparedDeltaFileIndex if keys.nonEmpty && isChosenFrom(index) => narrowed(index)
    case _ => scan
  }

  /** A LIMIT needs all files that Delta selected for it. */
  private def isChosenFrom(index: PreparedDeltaFileIndex): Boolean =
    !index.isInstanceOf[JoinFileIndex] && index.preparedScan.partition != null

  private def narrowed(index: PreparedDeltaFileIndex): FileSourceScanExec = {
    val fixed = scan.partitionFilters.filterNot(isDynamic)
    val joins = JoinedScans.byJoin(keys)
    val ranges = math.min(MaxRanges, math.max(2, math.pow(MaxBoxes.toDouble, 1.0 / joins.size).toInt))
    val start = Selection(index.matchingFiles(fixed, scan.dataFilters), Nil, Nil, Nil)
    val selection = joins.foldLeft(start) { (before, ofJoin) =>
      val looked = ofJoin.map(JoinCondition.of(_, values, ranges))
      val conditions = looked.collect { case Right(condition) => condition }
      val own = conditions.map(_.filter)
      val filters = before.filters ++ own
      val files = if (conditions.isEmpty) before.files else chosen(index, filters, conditions, before.files)
      val reason =
        if (files.size < before.files.size) None
        else if (conditions.isEmpty) looked.collectFirst { case Left(code) => code }
        else Some(if (isIndexed(index) || isLarge(files)) "UNSELECTIVE_KEYS" else "SMALL_SCAN")
      val outcome = JoinOutcome(
        JoinReport.sideOf(ofJoin.head.side),
        ofJoin.map(JoinReport.nameOf).distinct,
        conditions.map(_.ranges.keys.toLong).maxOption,
        reason,
        FileCount.of(files)
      )
      // Without effect on files, a filter would cost more in pages of indexes and dictionaries than it saves.
      val pushed = if (reason.isEmpty) before.pushed ++ own.filter(isOfData) else before.pushed
      Selection(files, filters, pushed, before.outcomes :+ outcome)
    }
    val filters = selection.pushed
    val location = new JoinFileIndex(index, filters, selection.files)
    val narrowed = scan.copy(
      relation = scan.relation.copy(location = location)(scan.relation.sparkSession),
      dataFilters = scan.dataFilters ++ filters
    )
    narrowed.copyTagsFrom(scan)
    narrowed.setTagValue(JoinOutcome.Tag, selection.outcomes)
    narrowed
  }

  private def isDynamic(filter: Expression): Boolean =
    filter.exists(part => part.isInstanceOf[PlanExpression[_]] || part.isInstanceOf[DynamicPruning])

  private def isOfData(filter: Expression): Boolean =
    filter.references.nonEmpty &&
      !filter.references.exists(column => scan.relation.partitionSchema.fieldNames.contains(column.name))

  /** The files that the index and Delta's statistics keep. */
  private def chosen(
      index: PreparedDeltaFileIndex,
      filters: Seq[Expression],
      conditions: Seq[JoinCondition],
      files: Seq[AddFile]
  ): Seq[AddFile] = {
    val snapshot = index.preparedScan.scannedSnapshot
    val inIndex = blocks(snapshot, scan.dataFilters.filterNot(isDynamic) ++ filters).fold(files)(files.filter(_))
    conditions.foldLeft(inIndex)((left, condition) => condition.select(left, snapshot, isLarge(left)))
  }

  private def isIndexed(index: PreparedDeltaFileIndex): Boolean =
    IndexedRelation.isIndexed(index.preparedScan.scannedSnapshot.metadata.configuration)

  private def isLarge(files: Seq[AddFile]): Boolean = FileCount.of(files).bytes >= JoinPruning.minBytes(session)

  /** Whether a file has a block that meets the filters; None if the index cannot tell. */
  private def blocks(snapshot: Snapshot, filters: Seq[Expression]): Option[AddFile => Boolean] = {
    val configuration = snapshot.metadata.configuration
    for {
      conditions <- Conditions.json(filters, snapshot.metadata.schema) if IndexedRelation.isIndexed(configuration)
      question = Map("configuration" -> IndexedRelation.json(configuration), "conditions" -> conditions)
      answer <- Python.text(Operation.PLAN_READ, question)
    } yield BlockPruning.parse(answer).keep
  }
}

private object NarrowedScan {

  /** Of one key; the index merges boxes beyond this number. */
  private val MaxRanges = 64

  /** The product of the ranges of all joins of a scan, which the index intersects. */
  private val MaxBoxes = 256

  /** Files that are left, filters that their rows have to pass, those of them for pages, and what each join did. */
  final private case class Selection(
      files: Seq[AddFile],
      filters: Seq[Expression],
      pushed: Seq[Expression],
      outcomes: Seq[JoinOutcome]
  )
}
