package org.apache.spark.sql.execution.usespark

import org.apache.spark.sql.catalyst.expressions.{Alias, BoundReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Distinct, Project}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike
import org.apache.spark.sql.execution.joins.{HashJoin, HashedRelation, LongHashedRelation}
import org.apache.spark.unsafe.types.UTF8String

/** The keys in the side of a join that is broadcast: the values of one of them, without nulls. */
object SideKeys {

  /** From the rows that adaptive execution has broadcast; None if they are more than some number, or not there yet. */
  def broadcast(side: SparkPlan, keys: Seq[Expression], position: Int, most: Long): Option[Array[Any]] = side match {
    case stage: BroadcastQueryStageExec
        if stage.isMaterialized && stage.getRuntimeStatistics.rowCount.exists(_ <= most) =>
      val relation = side.executeBroadcast[HashedRelation]().value
      val value = relation match {
        case _: LongHashedRelation => HashJoin.extractKeyExprAt(keys, position)
        case _ => BoundReference(position, keys(position).dataType, nullable = true)
      }
      Some(relation.keys().map(value.eval).filter(_ != null).map(copied).toArray)
    case _ => None
  }

  /** From a query of that side alone, which is executed here; None if they are more than some number. */
  def queried(side: SparkPlan, keys: Seq[Expression], position: Int, most: Long): Option[Array[Any]] =
    for {
      exchange <- Some(side).collect { case exchange: BroadcastExchangeLike => exchange }
      plan <- exchange.child.logicalLink
      session = side.session.asInstanceOf[SparkSession]
      query = Dataset.ofRows(session, Distinct(Project(Seq(Alias(keys(position), "key")()), plan)))
      rows = query.limit(math.min(most, Int.MaxValue - 1L).toInt + 1).queryExecution.executedPlan.executeCollect()
      if rows.length <= most
    } yield rows.map(_.get(0, keys(position).dataType)).filter(_ != null).map(copied)

  /** Rows are used again by their iterators. */
  private def copied(value: Any): Any = value match {
    case text: UTF8String => text.clone()
    case other => other
  }
}
