package org.apache.spark.sql.execution.usespark

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.{HashJoin, HashedRelation, LongHashedRelation}
import org.apache.spark.unsafe.types.UTF8String

/** The keys in the side of a join that adaptive execution has broadcast already. */
object BroadcastKeys {

  /** The number of broadcast rows; None if the side is not complete yet. */
  def rows(side: SparkPlan): Option[Long] = side match {
    case stage: BroadcastQueryStageExec if stage.isMaterialized => stage.getRuntimeStatistics.rowCount.map(_.toLong)
    case _ => None
  }

  /** The values of one key, without nulls; a value may come several times. */
  def values(side: SparkPlan, keys: Seq[Expression], position: Int): Iterator[Any] = {
    val relation = side.executeBroadcast[HashedRelation]().value
    val value = relation match {
      case _: LongHashedRelation => HashJoin.extractKeyExprAt(keys, position)
      case _ => BoundReference(position, keys(position).dataType, nullable = true)
    }
    relation.keys().map(value.eval).filter(_ != null).map {
      case text: UTF8String => text.clone() // The iterator uses its row again.
      case other => other
    }
  }
}
