package io.usespark

import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Lets Python refuse names that follow the name of a Delta table and are no virtual table, and virtual tables of views
 * and of other tables. Spark would only say that there is no such relation.
 */
case class UnknownVirtualTables(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (Python.attached) plan.foreach {
      case UnresolvedRelation(parts, _, _) if parts.length > 1 => check(parts)
      case _ => ()
    }
    plan
  }

  private def check(parts: Seq[String]): Unit = {
    val state = session.asInstanceOf[classic.SparkSession].sessionState
    val isOfUseCatalog = state.catalogManager.isCatalogRegistered(parts.head) &&
      state.catalogManager.catalog(parts.head).isInstanceOf[UseCatalog]
    val owner = if (isOfUseCatalog) parts.tail.init else parts.init
    // A database of this name rather has no such table.
    val isDatabase = parts.length == 2 && owner.exists(state.catalog.databaseExists) && !state.catalog.isTempView(owner)
    if (owner.nonEmpty && !isDatabase) {
      val table = Identifiers.quoted(owner)
      val isVirtual = Bridge.declarations().virtualTable(parts.last).isDefined
      val isRefused = TableLookup.find(session, table).kind match {
        case "delta" => true
        case "view" | "other" => isVirtual
        case _ => false
      }
      if (isRefused) Python.text(Operation.CHECK_VIRTUAL_TABLE, Map("table" -> table, "name" -> parts.last))
    }
  }
}
