package io.usespark

import java.util.IdentityHashMap

import scala.util.{Left, Right}
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Expression, PlanExpression}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.delta.usespark.{ColumnBounds, IndexedTransaction}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, HashJoin, ShuffledJoin}

/**
 * Lets the scan on one side of a join skip files, row groups and pages without any key of the other side.
 *
 * Adaptive execution calls it for each stage before the stage starts, after the sides that it broadcasts are complete.
 * The join stays as it is, so whatever is read too much changes nothing; where anything fails, nothing is skipped.
 */
case class JoinPruning(session: SparkSession) extends Rule[SparkPlan] with Logging {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Python.attached || !plan.exists(JoinPruning.isJoined)) plan
    else
      try {
        val limits = KeyLimits.of(session)
        if (limits.enabled) narrowed(plan, limits) else plan
      } catch {
        case NonFatal(error) if !IndexedTransaction.endsStatement(error) =>
          logWarning("Files were not skipped by the keys of joins.", error)
          plan
      }

  private def narrowed(plan: SparkPlan, limits: KeyLimits): SparkPlan = {
    val values = new JoinValues(session, limits, isSimulated = false)
    val narrowed = new IdentityHashMap[FileSourceScanExec, FileSourceScanExec]()
    for ((scan, ofStage) <- JoinedScans.of(plan, intoStages = false)) {
      val keys = ofStage.filter(key => key.refusal.isEmpty && !key.isShuffled) ++ ShuffledKeys.of(scan)
      // One node at two places would need files for both.
      if (narrowed.containsKey(scan)) narrowed.put(scan, scan)
      else narrowed.put(scan, NarrowedScan(session, scan, keys, limits, values).result)
    }
    plan.transformUp { case scan: FileSourceScanExec =>
      val result = narrowed.getOrDefault(scan, scan)
      // Spark keeps the node that it has if the new one equals it.
      if (result == scan) result.getTagValue(JoinOutcome.Tag).foreach(scan.setTagValue(JoinOutcome.Tag, _))
      result
    }
  }
}

object JoinPruning {
  def isEnabled(session: SparkSession): Boolean = KeyLimits.of(session).enabled

  private def isJoined(node: SparkPlan): Boolean = node match {
    case _: BroadcastHashJoinExec => true
    case scan: FileSourceScanExec => ShuffledKeys.of(scan).nonEmpty
    case _ => false
  }
}

/**
 * Notes at each scan the joins above it whose rows are shuffled, since the stage of the scan does not contain them.
 *
 * Adaptive execution calls it for each plan that it makes of a query, also for one that is only explained. It starts
 * nothing.
 */
case class ShuffledKeys(session: SparkSession) extends Rule[SparkPlan] with Logging {
  override def apply(plan: SparkPlan): SparkPlan = {
    if (Python.attached && plan.exists(node => node.isInstanceOf[ShuffledJoin] || node.isInstanceOf[HashJoin]))
      try note(plan)
      catch {
        case NonFatal(error) => logWarning("The joins above shuffled scans were not noted.", error)
      }
    plan
  }

  private def note(plan: SparkPlan): Unit = {
    val scans = JoinedScans.of(plan, intoStages = false)
    for ((scan, keys) <- scans) {
      val open = keys.filter(key => key.isShuffled && key.refusal.isEmpty)
      // One node at two places would need files for both.
      if (open.nonEmpty && scans.count(_._1 eq scan) == 1) {
        open.foreach(key => JoinValues.known(key.join))
        val noted = if (isShared(scan, scans.map(_._1), plan)) open.map(_.refusedAs("SHARED_EXCHANGE")) else open
        scan.setTagValue(ShuffledKeys.Tag, noted)
      }
    }
  }

  /** Whether Spark would use the shuffled rows of the scan for another part of the plan, and reads them once for both. */
  private def isShared(scan: FileSourceScanExec, scans: Seq[FileSourceScanExec], plan: SparkPlan): Boolean =
    scans.exists(other => (other ne scan) && other.relation.location.rootPaths == scan.relation.location.rootPaths) && {
      val exchanges = plan.collect { case exchange: ShuffleExchangeLike => exchange }
      val (around, others) = exchanges.partition(_.exists(_ eq scan))
      around.exists(exchange => others.exists(exchange.sameResult))
    }
}

object ShuffledKeys {
  private val Tag = TreeNodeTag[Seq[JoinKey]]("use.join.shuffled")

  /** The keys of joins above a scan whose rows are shuffled. */
  def of(scan: FileSourceScanExec): Seq[JoinKey] = scan.getTagValue(Tag).getOrElse(Nil)
}

/**
 * One scan and the keys of joins that its rows have to match.
 *
 * @param values the values of the keys.
 */
final private[usespark] case class NarrowedScan(
    session: SparkSession,
    scan: FileSourceScanExec,
    keys: Seq[JoinKey],
    limits: KeyLimits,
    values: JoinValues
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
    // A job for keys is judged by the files that the keys of broadcasts leave.
    val joins = JoinedScans.byJoin(keys).sortBy(_.exists(_.isShuffled))
    val ranges = math.min(limits.ranges, math.max(2, math.pow(limits.boxes.toDouble, 1.0 / joins.size).toInt))
    val prepared = index.preparedScan.files
    val selection = joins.foldLeft(Selection(prepared, Nil, Nil, Nil)) { (before, ofJoin) =>
      val looked = ofJoin.map(JoinCondition.of(_, key => values.of(key, savings(index, key, before.files)), ranges))
      val conditions = looked.collect { case Right(condition) => condition }
      val own = conditions.map(_.filter)
      val filters = before.filters ++ own
      val files = if (conditions.isEmpty) before.files else chosen(index, filters, conditions, before.files)
      val reason =
        if (files.size < before.files.size) None
        else if (conditions.isEmpty) looked.collectFirst { case Left(code) => code }
        else {
          def ofPartitions = conditions.forall(each => partitions(index, each.column).nonEmpty)
          Some(if (isIndexed(index) || isLarge(files) || ofPartitions) "UNSELECTIVE_KEYS" else "SMALL_SCAN")
        }
      val outcome = JoinOutcome(
        JoinReport.sideOf(ofJoin.head.side),
        ofJoin.map(JoinReport.nameOf).distinct,
        conditions.map(_.ranges.keys.toLong).maxOption,
        reason,
        FileCount.of(files),
        values.takeStarted()
      )
      // Without effect on files, a filter would cost more in pages of indexes and dictionaries than it saves.
      val pushed = if (reason.isEmpty) before.pushed ++ own.filter(isOfData) else before.pushed
      Selection(files, filters, pushed, before.outcomes :+ outcome)
    }
    val result =
      if (selection.files.size == prepared.size) scan.copy()
      else {
        // Where its filters are not those of the optimizer any more, Delta selects anew, in a job.
        val dropped = prepared.map(_.path).toSet -- selection.files.map(_.path)
        val files = index.matchingFiles(fixed, scan.dataFilters).filterNot(file => dropped(file.path))
        val location = new JoinFileIndex(index, selection.pushed, files)
        scan.copy(
          relation = scan.relation.copy(location = location)(scan.relation.sparkSession),
          dataFilters = scan.dataFilters ++ selection.pushed
        )
      }
    result.copyTagsFrom(scan)
    result.setTagValue(JoinOutcome.Tag, selection.outcomes)
    result
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
    conditions.foldLeft(inIndex) { (left, condition) =>
      partitions(index, condition.column) match {
        case Some(values) => condition.select(left, values)
        case None => bounds(snapshot, condition.column, isLarge(left)).fold(left)(condition.select(left, _))
      }
    }
  }

  private def bounds(snapshot: Snapshot, column: Expression, mayRead: Boolean): Option[ColumnBounds] = {
    def physical(of: Expression) = ColumnBounds.path(of, snapshot.schema)
    val all = keys.filter(_.refusal.isEmpty).flatMap(key => JoinCondition.column(key.value).flatMap(physical)).distinct
    physical(column).flatMap(ColumnBounds.of(snapshot, _, all, mayRead))
  }

  /** What the values of a key can save of some files. */
  private def savings(index: PreparedDeltaFileIndex, key: JoinKey, files: Seq[AddFile]): Savings = {
    val bytes = FileCount.of(files).bytes
    val (columns, all) = (scan.requiredSchema.defaultSize.toDouble, scan.relation.dataSchema.defaultSize.toDouble)
    def oneKeyShare = JoinCondition.column(key.value) match {
      case Some(column) =>
        def ofBounds = bounds(index.preparedScan.scannedSnapshot, column, mayRead = true).map(_.oneKeyShare(files))
        partitions(index, column)
          .map(_.oneKeyShare(files))
          .orElse(ofBounds)
          .getOrElse(if (isIndexed(index)) 0.0 else 1.0)
      case None => 1.0
    }
    Savings(bytes, (bytes * math.min(1.0, columns / math.max(1.0, all))).toLong, () => oneKeyShare)
  }

  private def partitions(index: PreparedDeltaFileIndex, column: Expression): Option[PartitionKeys] =
    PartitionKeys.of(index.preparedScan.scannedSnapshot, column)

  private def isIndexed(index: PreparedDeltaFileIndex): Boolean =
    IndexedRelation.isIndexed(index.preparedScan.scannedSnapshot.metadata.configuration)

  private def isLarge(files: Seq[AddFile]): Boolean = FileCount.of(files).bytes >= limits.bytes

  /** Whether a file has a block that meets the filters; None if the index cannot tell. */
  private def blocks(snapshot: Snapshot, filters: Seq[Expression]): Option[AddFile => Boolean] = {
    val configuration = snapshot.metadata.configuration
    for {
      conditions <- Conditions.json(filters, snapshot.metadata.schema) if IndexedRelation.isIndexed(configuration)
      pruning <- BlockPruning.of(session, configuration, conditions)
    } yield pruning.keep
  }
}

private object NarrowedScan {

  /** Files that are left, filters that their rows have to pass, those of them for pages, and what each join did. */
  final private case class Selection(
      files: Seq[AddFile],
      filters: Seq[Expression],
      pushed: Seq[Expression],
      outcomes: Seq[JoinOutcome]
  )
}
