package io.usespark

import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.analysis.{AnalysisContext, UnresolvedRelation}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_RELATION

/**
 * Adds the database of a view to names such as `t.optimizations` in it. Spark keeps the relations of a query by their
 * names, and these names may stand for different tables in different views.
 */
case class VirtualTablesOfViews(session: SparkSession) extends Rule[LogicalPlan] {
  private def catalogs = session.asInstanceOf[classic.SparkSession].sessionState.catalogManager

  override def apply(plan: LogicalPlan): LogicalPlan = AnalysisContext.get.catalogAndNamespace match {
    case Seq(catalog @ "spark_catalog", database) =>
      plan.resolveOperatorsWithPruning(_.containsPattern(UNRESOLVED_RELATION)) {
        case relation @ UnresolvedRelation(parts, _, _) =>
          val name = if (parts.head.equalsIgnoreCase(catalog)) parts.tail else parts
          if (!isVirtual(database, name)) relation
          else SubqueryAlias(catalog +: name, relation.copy(multipartIdentifier = Seq(catalog, database) ++ name))
      }
    case _ => plan
  }

  private def isVirtual(database: String, name: Seq[String]): Boolean =
    name.length == 2 && (catalogs.catalog("spark_catalog") match {
      case own: UseDeltaCatalog => own.isVirtualTable(database, name) && !catalogs.isCatalogRegistered(name.head)
      case _ => false
    })
}
