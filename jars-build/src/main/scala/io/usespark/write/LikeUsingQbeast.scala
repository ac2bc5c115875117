package io.usespark

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.CreateTableLikeCommand

/** CREATE TABLE … LIKE … USING qbeast before Spark 4.2, which then asks the catalog. */
class LikeUsingQbeast extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case like: CreateTableLikeCommand if like.provider.exists(IndexedTables.isQbeast) =>
      like.copy(provider = Some("delta"), properties = IndexedTables.ofQbeast(like.properties))
    case other => other
  }
}
