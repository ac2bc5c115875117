package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Murmur3Hash}
import org.apache.spark.sql.delta.DeltaColumnMapping
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.StructType

/** How a Delta scan looks in a plan, and how its columns are named in the index. */
object IndexedRelation {
  def unapply(relation: LogicalRelation): Option[FileIndex] = relation.relation match {
    case files: HadoopFsRelation => Some(files.location)
    case _ => None
  }

  /** Whether the table has an index at all; a query on any other Delta table costs what it costs without us. */
  def isIndexed(configuration: Map[String, String]): Boolean = configuration.contains("qbeast.lastRevisionID")

  /** The attribute of a column that the index names by its physical name. */
  def attribute(relation: LogicalRelation, schema: StructType, physical: String): Option[Attribute] =
    schema.fields
      .find(field => DeltaColumnMapping.getPhysicalName(field) == physical)
      .flatMap(field => relation.output.find(_.name.equalsIgnoreCase(field.name)))

  def physicalName(attribute: Attribute, schema: StructType): Option[String] =
    schema.fields.find(_.name.equalsIgnoreCase(attribute.name)).map(DeltaColumnMapping.getPhysicalName)

  def hasHash(expression: Expression): Boolean = expression.exists(_.isInstanceOf[Murmur3Hash])

  def json(values: Map[String, String]): String = new ObjectMapper().writeValueAsString(values.asJava)
}
