package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.analysis.caseInsensitiveResolution
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.delta.DeltaColumnMapping
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.{StructField, StructType}

/** How a Delta scan looks in a plan, and how its columns are named in the index. */
object IndexedRelation {
  private val Columns = "use.index.columns"
  private val mapper = new ObjectMapper()

  def unapply(relation: LogicalRelation): Option[FileIndex] = relation.relation match {
    case files: HadoopFsRelation => Some(files.location)
    case _ => None
  }

  /** Whether the table has an index at all; a query on any other Delta table costs what it costs without us. */
  def isIndexed(configuration: Map[String, String]): Boolean = configuration.contains("qbeast.lastRevisionID")

  /** Whether the table is to have an index: it has one, or its owner names the columns. */
  def hasIndex(configuration: Map[String, String]): Boolean =
    isIndexed(configuration) || (configuration.contains(Columns) && !isAutomatic(configuration.get))

  /** Whether index columns are left to the service, which chooses them from recorded reads. */
  def isAutomatic(property: String => Option[String]): Boolean =
    property(Columns).exists(_.trim.equalsIgnoreCase("auto"))

  /** The column that the index names by its physical name, a nested one by its path `a.b`. */
  def column(relation: LogicalRelation, schema: StructType, physical: String): Option[Expression] =
    named(schema, physical)
      .flatMap(fields => relation.resolve(fields.map(_.name), caseInsensitiveResolution))
      .map {
        case Alias(field, _) => field
        case attribute => attribute
      }

  /** The index's name of a column of the table; None for what is no column, or if another column has the same name. */
  def physicalName(expression: Expression, schema: StructType): Option[String] =
    physicalPath(expression, schema).map(_.mkString(".")).filter(named(schema, _).isDefined)

  /** The physical names of a column of the table and of the structs around it, from the outermost. */
  def physicalPath(expression: Expression, schema: StructType): Option[Seq[String]] =
    fieldPath(expression, schema).map(_.map(DeltaColumnMapping.getPhysicalName))

  /** The column of the table, after the structs around it, from the outermost; None for what is no column. */
  def fieldPath(expression: Expression, schema: StructType): Option[Seq[StructField]] =
    path(expression).flatMap(fields(_, schema))

  def hasHash(expression: Expression): Boolean = expression.exists(_.isInstanceOf[Murmur3Hash])

  /** The smallest and largest weights that a condition takes, where it says so as our filters do. */
  def weightBounds(condition: Expression): Seq[(String, Int)] = condition.collect {
    case GreaterThanOrEqual(Murmur3Hash(_, 42), Literal(first: Int, _)) => "first" -> first
    case LessThanOrEqual(Murmur3Hash(_, 42), Literal(last: Int, _)) => "last" -> last
  }

  def json(values: Map[String, String]): String = mapper.writeValueAsString(values.asJava)

  /**
   * The only column whose physical names, joined by dots, are this name. None if there are several: columns may be added
   * after the index was made, so that the name does not tell which of them was indexed.
   */
  private def named(schema: StructType, physical: String): Option[Seq[StructField]] =
    pathsOf(schema, physical) match {
      case Seq(only) => Some(only)
      case _ => None
    }

  private def pathsOf(schema: StructType, physical: String): Seq[Seq[StructField]] =
    schema.fields.toSeq.flatMap { field =>
      val name = DeltaColumnMapping.getPhysicalName(field)
      field.dataType match {
        case _ if name == physical => Seq(Seq(field))
        case inner: StructType if physical.startsWith(name + ".") =>
          pathsOf(inner, physical.substring(name.length + 1)).map(field +: _)
        case _ => Nil
      }
    }

  /** Facts about files, such as their sizes, are no columns, although they may have the name of one. */
  private def path(expression: Expression): Option[Seq[String]] = expression match {
    case MetadataAttribute(_) => None
    case attribute: Attribute => Some(Seq(attribute.name))
    case field: GetStructField => path(field.child).map(_ :+ field.childSchema(field.ordinal).name)
    case _ => None
  }

  private def fields(path: Seq[String], schema: StructType): Option[Seq[StructField]] =
    schema.fields.find(_.name.equalsIgnoreCase(path.head)).flatMap { field =>
      if (path.size == 1) Some(Seq(field))
      else
        field.dataType match {
          case inner: StructType => fields(path.tail, inner).map(field +: _)
          case _ => None
        }
    }
}
