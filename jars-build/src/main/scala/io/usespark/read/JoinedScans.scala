package io.usespark

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, ShuffledJoin}
import org.apache.spark.sql.execution.usespark.SideKeys

/**
 * A key of a join that the rows of a scan have to match.
 *
 * @param join the join.
 * @param side its other side, with the keys in `keys`.
 * @param position of the key in `keys`.
 * @param value the key as an expression of the columns of the scan.
 * @param refusal the code of the reason why it selects no files; None if it can.
 * @param isShuffled whether rows are shuffled between the scan and the join, so that they are read before the join starts.
 */
final case class JoinKey(
    join: SparkPlan,
    side: SparkPlan,
    keys: Seq[Expression],
    position: Int,
    value: Expression,
    refusal: Option[String],
    isShuffled: Boolean
) {
  def refusedAs(code: String): JoinKey = if (refusal.isEmpty) copy(refusal = Some(code)) else this
  def shuffled: JoinKey = copy(isShuffled = true)
}

/**
 * The scans of a plan, each with the keys of the joins above it.
 *
 * A row whose key is not among those of the other side changes nothing if the join drops it, and if everything between
 * the scan and the join keeps or drops rows one by one. Then the row need not be read.
 */
final class JoinedScans private (intoStages: Boolean) {
  private var isAdaptive = !intoStages
  // Whether the plan is one of a query of which no stage has begun yet.
  private var isPlanned = intoStages
  private val scans = Seq.newBuilder[(FileSourceScanExec, Seq[JoinKey])]

  private def visit(node: SparkPlan, keys: Seq[JoinKey]): Unit = node match {
    case scan: FileSourceScanExec => scans += scan -> keys.map(key => notReady(key).fold(key)(key.refusedAs))
    case join: BroadcastHashJoinExec =>
      val isRight = join.buildSide == BuildRight
      val (streamed, built) = if (isRight) (join.left, join.right) else (join.right, join.left)
      val (own, others) = if (isRight) (join.leftKeys, join.rightKeys) else (join.rightKeys, join.leftKeys)
      val added = own.indices.map { i =>
        JoinKey(join, built, others, i, own(i), JoinedScans.kept(join.joinType, left = isRight), isShuffled = false)
      }
      visit(streamed, through(join.joinType, join.buildSide, streamed, keys) ++ added)
      visit(built, Nil)
    case join: BroadcastNestedLoopJoinExec =>
      val (streamed, built) = if (join.buildSide == BuildRight) (join.left, join.right) else (join.right, join.left)
      visit(streamed, through(join.joinType, join.buildSide, streamed, keys))
      visit(built, Nil)
    case join: ShuffledJoin =>
      def added(side: SparkPlan, own: Seq[Expression], others: Seq[Expression], left: Boolean) = own.indices.map { i =>
        JoinKey(join, side, others, i, own(i), JoinedScans.kept(join.joinType, left), isShuffled = true)
      }
      def above(left: Boolean) = {
        val inner = within(if (left) join.left else join.right, keys)
        if (JoinedScans.isRowwise(join.joinType, left)) inner else inner.map(_.refusedAs("OPERATOR_BETWEEN"))
      }
      visit(join.left, above(left = true) ++ added(join.right, join.leftKeys, join.rightKeys, left = true))
      visit(join.right, above(left = false) ++ added(join.left, join.rightKeys, join.leftKeys, left = false))
    case project @ ProjectExec(list, child) if list.forall(_.deterministic) =>
      val aliases = list.collect { case alias: Alias => alias.exprId -> alias.child }.toMap
      visit(
        child,
        keys.map { key =>
          key.copy(value = key.value.transform { case a: Attribute => aliases.getOrElse(a.exprId, a) })
        }
      )
    case FilterExec(condition, child) if condition.deterministic => visit(child, keys)
    case _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec | _: AQEShuffleReadExec =>
      visit(node.children.head, keys)
    case sort: SortExec if !sort.global => visit(sort.child, keys)
    case union: UnionExec =>
      union.children.foreach { child =>
        val columns = union.output.map(_.exprId).zip(child.output).toMap
        visit(
          child,
          keys.map { key =>
            key.copy(value = key.value.transform { case a: Attribute => columns.getOrElse(a.exprId, a) })
          }
        )
      }
    case _: BroadcastExchangeLike | _: BroadcastQueryStageExec => inside(node).foreach(visit(_, Nil))
    case _: Exchange | _: QueryStageExec =>
      inside(node).foreach(child => visit(child, within(child, keys).map(_.shuffled)))
    case adaptive: AdaptiveSparkPlanExec =>
      isAdaptive = true
      isPlanned = intoStages && !adaptive.executedPlan.exists(_.isInstanceOf[QueryStageExec])
      visit(adaptive.executedPlan, keys)
    case other =>
      other.children.foreach(child => visit(child, within(child, keys).map(_.refusedAs("OPERATOR_BETWEEN"))))
  }

  /** Why the keys are not known when the scan starts; for rows that are shuffled, a job may still collect them. */
  private def notReady(key: JoinKey): Option[String] =
    if (!isAdaptive) Some("ADAPTIVE_EXECUTION_OFF")
    else if (if (key.isShuffled) isPlanned else !SideKeys.isBroadcast(key.side)) Some(JoinedScans.NotExecuted)
    else None

  private def inside(node: SparkPlan): Seq[SparkPlan] = node match {
    case stage: QueryStageExec => if (intoStages) Seq(stage.plan) else Nil
    case other => other.children
  }

  /** The keys of joins above that are keys of this side, too. */
  private def within(side: SparkPlan, keys: Seq[JoinKey]): Seq[JoinKey] =
    keys.filter(_.value.references.subsetOf(side.outputSet))

  /** The same through a join, for the side that is not broadcast: each of its rows leads to rows of its own. */
  private def through(joinType: JoinType, build: BuildSide, streamed: SparkPlan, keys: Seq[JoinKey]): Seq[JoinKey] = {
    val inner = within(streamed, keys)
    if (JoinedScans.isRowwise(joinType, left = build == BuildRight)) inner
    else inner.map(_.refusedAs("OPERATOR_BETWEEN"))
  }
}

object JoinedScans {
  val NotExecuted = "NOT_EXECUTED"

  /**
   * The scans of a plan, without its subqueries.
   *
   * @param intoStages also those inside the stages that adaptive execution has made.
   */
  def of(plan: SparkPlan, intoStages: Boolean): Seq[(FileSourceScanExec, Seq[JoinKey])] = {
    val joined = new JoinedScans(intoStages)
    joined.visit(plan, Nil)
    joined.scans.result()
  }

  /** The keys of each join, from the uppermost. */
  def byJoin(keys: Seq[JoinKey]): Seq[Seq[JoinKey]] = {
    val joins =
      keys.foldLeft(Seq.empty[SparkPlan])((seen, key) => if (seen.exists(_ eq key.join)) seen else seen :+ key.join)
    joins.map(join => keys.filter(_.join eq join))
  }

  /** The code for a side whose rows without a match a join keeps; None if it drops them. */
  private def kept(joinType: JoinType, left: Boolean): Option[String] = {
    val drops = joinType match {
      case _: InnerLike => true
      case LeftSemi => true
      case LeftOuter | LeftAnti | _: ExistenceJoin => !left
      case RightOuter => left
      case _ => false
    }
    Option.unless(drops)("UNMATCHED_ROWS_KEPT")
  }

  /** Whether each row of a side leads to rows of its own. */
  private def isRowwise(joinType: JoinType, left: Boolean): Boolean = joinType match {
    case _: InnerLike => true
    case LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => left
    case RightOuter => !left
    case _ => false
  }
}
