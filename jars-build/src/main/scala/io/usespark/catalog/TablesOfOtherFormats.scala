package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command._

/** Lets Python refuse properties of USE on tables that are not Delta's, where they would have no effect. */
case class TablesOfOtherFormats(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (Python.attached) plan match {
      case CreateDataSourceTableCommand(table, _) => check(table)
      case CreateDataSourceTableAsSelectCommand(table, _, _, _) => check(table)
      case CreateTableCommand(table, _) => check(table)
      case view: CreateViewCommand => check(view.name, Some("view"), view.properties)
      case AlterTableSetPropertiesCommand(name, properties, true) => check(name, Some("view"), properties)
      case AlterTableSetPropertiesCommand(name, properties, false) =>
        check(
          name,
          session.asInstanceOf[classic.SparkSession].sessionState.catalog.getTableMetadata(name).provider,
          properties
        )
      case _ => ()
    }
    plan
  }

  private def check(table: CatalogTable): Unit = check(table.identifier, table.provider, table.properties)

  private def check(name: TableIdentifier, provider: => Option[String], properties: Map[String, String]): Unit =
    if (MetadataCheck.areOurs(properties.keys))
      Python.text(
        Operation.CHECK_OTHER_FORMAT,
        Map(
          "table" -> name.unquotedString,
          "provider" -> provider.getOrElse("hive"),
          "properties" -> new ObjectMapper().writeValueAsString(properties.asJava)
        )
      )
}
