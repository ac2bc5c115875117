package io.usespark

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, BroadcastQueryStageExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, ShuffledJoin}

/**
 * A key of a join that the rows of a scan have to match.
 *
 * @param join the join.
 * @param side its other side, with the keys in `keys`.
 * @param position of the key in `keys`.
 * @param value the key as an expression of the columns of the scan.
 * @param refusal the code of the reason why it selects no files; None if it can.
 */
final case class JoinKey(
    join: SparkPlan,
    side: SparkPlan,
    keys: Seq[Expression],
    position: Int,
    value: Expression,
    refusal: Option[String]
) {
  def refusedAs(code: String): JoinKey = if (refusal.isEmpty) copy(refusal = Some(code)) else this
}

/**
 * The scans of a plan, each with the keys of the joins above it.
 *
 * A row whose key is not among those of the other side changes nothing if the join drops it, and if everything between
 * the scan and the join keeps or drops rows one by one. Then the row need not be read.
 */
final class JoinedScans private (intoStages: Boolean) {
  private var isAdaptive = !intoStages
  private val scans = Seq.newBuilder[(FileSourceScanExec, Seq[JoinKey])]

  private def visit(node: SparkPlan, keys: Seq[JoinKey]): Unit = node match {
    case scan: FileSourceScanExec => scans += scan -> keys
    case join: BroadcastHashJoinExec =>
      val isRight = join.buildSide == BuildRight
      val (streamed, built) = if (isRight) (join.left, join.right) else (join.right, join.left)
      val (own, others) = if (isRight) (join.leftKeys, join.rightKeys) else (join.rightKeys, join.leftKeys)
      val added = own.indices.map { i =>
        val key = JoinKey(join, built, others, i, own(i), notReady(built))
        if (JoinedScans.drops(join.joinType, left = isRight)) key else key.refusedAs("UNMATCHED_ROWS_KEPT")
      }
      visit(streamed, through(join.joinType, join.buildSide, streamed, keys) ++ added)
      visit(built, Nil)
    case join: BroadcastNestedLoopJoinExec =>
      val (streamed, built) = if (join.buildSide == BuildRight) (join.left, join.right) else (join.right, join.left)
      visit(streamed, through(join.joinType, join.buildSide, streamed, keys))
      visit(built, Nil)
    case join: ShuffledJoin =>
      def added(side: SparkPlan, own: Seq[Expression], others: Seq[Expression], left: Boolean) = own.indices.map { i =>
        val code = if (JoinedScans.drops(join.joinType, left)) "SHUFFLED" else "UNMATCHED_ROWS_KEPT"
        JoinKey(join, side, others, i, own(i), Some(code))
      }
      visit(join.left, within(join.left, keys) ++ added(join.right, join.leftKeys, join.rightKeys, left = true))
      visit(join.right, within(join.right, keys) ++ added(join.left, join.rightKeys, join.leftKeys, left = false))
    case project @ ProjectExec(list, child) if list.forall(_.deterministic) =>
      val aliases = list.collect { case alias: Alias => alias.exprId -> alias.child }.toMap
      visit(
        child,
        keys.map { key =>
          key.copy(value = key.value.transform { case a: Attribute => aliases.getOrElse(a.exprId, a) })
        }
      )
    case FilterExec(condition, child) if condition.deterministic => visit(child, keys)
    case _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec => visit(node.children.head, keys)
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
      inside(node).foreach(child => visit(child, within(child, keys).map(_.refusedAs("SHUFFLED"))))
    case adaptive: AdaptiveSparkPlanExec =>
      isAdaptive = true
      visit(adaptive.executedPlan, keys)
    case other =>
      other.children.foreach(child => visit(child, within(child, keys).map(_.refusedAs("OPERATOR_BETWEEN"))))
  }

  private def notReady(side: SparkPlan): Option[String] = side match {
    case stage: BroadcastQueryStageExec if stage.isMaterialized => None
    case _ => Some(if (isAdaptive) "NOT_EXECUTED" else "ADAPTIVE_EXECUTION_OFF")
  }

  private def inside(node: SparkPlan): Seq[SparkPlan] = node match {
    case stage: QueryStageExec => if (intoStages) Seq(stage.plan) else Nil
    case other => other.children
  }

  /** The keys of joins above that are keys of this side, too. */
  private def within(side: SparkPlan, keys: Seq[JoinKey]): Seq[JoinKey] =
    keys.filter(_.value.references.subsetOf(side.outputSet))

  /** The same through a join, for the side that is not broadcast: each of its rows leads to rows of its own. */
  private def through(joinType: JoinType, build: BuildSide, streamed: SparkPlan, keys: Seq[JoinKey]): Seq[JoinKey] = {
    val isRowwise = joinType match {
      case _: InnerLike => true
      case LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => build == BuildRight
      case RightOuter => build != BuildRight
      case _ => false
    }
    val inner = within(streamed, keys)
    if (isRowwise) inner else inner.map(_.refusedAs("OPERATOR_BETWEEN"))
  }
}

object JoinedScans {

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

  /** Whether a join drops the rows of a side that have no match. */
  private def drops(joinType: JoinType, left: Boolean): Boolean = joinType match {
    case _: InnerLike => true
    case LeftSemi => true
    case LeftOuter | LeftAnti | _: ExistenceJoin => !left
    case RightOuter => left
    case _ => false
  }
}
