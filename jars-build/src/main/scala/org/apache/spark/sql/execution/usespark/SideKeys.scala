package org.apache.spark.sql.execution.usespark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, BoundReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Distinct, LogicalPlan, Project}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.{FileSourceScanExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.joins.{HashJoin, HashedRelation, LongHashedRelation}
import org.apache.spark.unsafe.types.UTF8String

/** The keys in the other side of a join, without nulls. */
object SideKeys extends AdaptiveSparkPlanHelper {

  /**
   * The different values of one key, from the rows that adaptive execution has broadcast; None if the rows are more than
   * some number, or not there yet.
   */
  def broadcast(side: SparkPlan, keys: Seq[Expression], position: Int, most: Long): Option[Array[Any]] = side match {
    case stage: BroadcastQueryStageExec if isBroadcast(side) && stage.getRuntimeStatistics.rowCount.exists(_ <= most) =>
      val relation = side.executeBroadcast[HashedRelation]().value
      val value = relation match {
        case _: LongHashedRelation => HashJoin.extractKeyExprAt(keys, position)
        case _ => BoundReference(position, keys(position).dataType, nullable = true)
      }
      Some(relation.keys().map(value.eval).filter(_ != null).map(copied).toArray.distinct)
    case _ => None
  }

  /** Whether the rows are broadcast already. */
  def isBroadcast(side: SparkPlan): Boolean = side match {
    case stage: BroadcastQueryStageExec => stage.isMaterialized
    case _ => false
  }

  /** The query whose rows a side has, as the optimizer left it before any stage ran; None if the side does not tell. */
  def query(side: SparkPlan): Option[LogicalPlan] = side match {
    case sort: SortExec if !sort.global => query(sort.child)
    case read: AQEShuffleReadExec => query(read.child)
    case stage: QueryStageExec => query(stage.plan)
    case exchange: Exchange => query(exchange.child)
    case other => other.logicalLink.map(withoutStages)
  }

  private def withoutStages(plan: LogicalPlan): LogicalPlan = plan.transformDown { case stage: LogicalQueryStage =>
    withoutStages(stage.logicalPlan)
  }

  /**
   * The different keys of a query, from a job that is started here.
   *
   * @param keys expressions of the columns of the query.
   * @param most number of rows.
   * @param description of the job, for Spark's UI.
   * @return rows with all keys, None if they are more than the number; and the scans of the job.
   */
  def collected(
      session: SparkSession,
      query: LogicalPlan,
      keys: Seq[Expression],
      most: Long,
      description: String
  ): (Option[Array[InternalRow]], Seq[FileSourceScanExec]) = {
    val named = keys.zipWithIndex.map { case (key, i) => Alias(key, s"key$i")() }
    val limit = math.min(most, Int.MaxValue - 1L).toInt
    val plan = Dataset.ofRows(session, Distinct(Project(named, query))).limit(limit + 1).queryExecution.executedPlan
    OwnQueries.described(session.sparkContext, description) {
      val rows = plan.executeCollect()
      Option.when(rows.length <= limit)(rows) -> collect(plan) { case scan: FileSourceScanExec => scan }
    }
  }

  /** The values in a column of such rows. */
  def values(rows: Array[InternalRow], keys: Seq[Expression], position: Int): Array[Any] =
    rows.map(_.get(position, keys(position).dataType)).filter(_ != null).map(copied).distinct

  /** Rows are used again by their iterators. */
  private def copied(value: Any): Any = value match {
    case text: UTF8String => text.clone()
    case other => other
  }
}
