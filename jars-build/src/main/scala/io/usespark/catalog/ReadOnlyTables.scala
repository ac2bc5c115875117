package io.usespark

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Refuses what virtual tables and the tables of `use_catalog` do not offer, before Spark says so in words of its own:
 * statements that change them, and queries of the rows of a table through `use_catalog`.
 */
case class ReadOnlyTables(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case insert: InsertIntoStatement => refuseChange("INSERT", insert.table)
      case write: V2WriteCommand => refuseChange("INSERT", write.table)
      case delete: DeleteFromTable => refuseChange("DELETE", delete.table)
      case update: UpdateTable => refuseChange("UPDATE", update.table)
      case merge: MergeIntoTable => refuseChange("MERGE", merge.targetTable)
      case truncate: TruncateTable => refuseChange("TRUNCATE", truncate.table)
      case relation: DataSourceV2Relation =>
        relation.table match {
          case _: TableFacade => throw UseCatalog.refused("SELECT from a table")
          case _ => ()
        }
      case _ => ()
    }
    plan
  }

  private def refuseChange(statement: String, target: LogicalPlan): Unit = target
    .collectFirst {
      case relation: DataSourceV2Relation => relation.table
      case resolved: ResolvedTable => resolved.table
    }
    .foreach(refuse(statement, _))

  private def refuse(statement: String, table: Table): Unit = table match {
    case _: TableFacade => throw UseCatalog.refused(statement)
    case _: VirtualTable => throw UseException.readOnly(statement, table.name())
    case _ => ()
  }
}
