package io.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.StructType

/**
 * A table as CREATE or REPLACE defines it.
 *
 * @param properties of the statement, with its options under their name and under `option.` and their name
 */
final private[usespark] class NewTable(
    val identifier: Identifier,
    val schema: StructType,
    val partitions: Array[Transform],
    val properties: ju.Map[String, String]
) {
  def isQbeast: Boolean = IndexedTables.isQbeast(properties.get(TableCatalog.PROP_PROVIDER))

  /** The options of the statement. */
  val options: Map[String, String] = properties.asScala.toMap.collect {
    case (key, value) if key.startsWith(TableCatalog.OPTION_PREFIX) =>
      key.stripPrefix(TableCatalog.OPTION_PREFIX) -> value
  }

  /** The properties without the options, words of the catalog included. */
  val ownProperties: Map[String, String] =
    properties.asScala.toMap.filterNot(_._1.startsWith(TableCatalog.OPTION_PREFIX)) -- options.keys

  /** The same table with further properties. */
  def withProperties(additions: Map[String, String]): NewTable =
    if (additions.isEmpty) this
    else new NewTable(identifier, schema, partitions, (properties.asScala ++ additions).asJava)

  /** The partition columns; fails for a transform that is no column. */
  def partitionColumns: Seq[String] = partitions.toSeq.map { transform =>
    NewTable.column(transform).getOrElse {
      throw UseException.notSupported(s"${transform.name()} is not available for tables USING qbeast.")
    }
  }

  /** The partition columns, without other transforms. */
  def plainPartitionColumns: Seq[String] = partitions.toSeq.flatMap(NewTable.column)
}

private[usespark] object NewTable {
  // Words of the catalog, which are no properties of the table.
  private val OfCatalog = Set(
    TableCatalog.PROP_LOCATION,
    TableCatalog.PROP_PROVIDER,
    TableCatalog.PROP_COMMENT,
    TableCatalog.PROP_OWNER,
    TableCatalog.PROP_EXTERNAL,
    TableCatalog.PROP_IS_MANAGED_LOCATION,
    "path"
  )

  def withoutWordsOfCatalog(properties: Map[String, String]): Map[String, String] = properties -- OfCatalog

  private def column(transform: Transform): Option[String] =
    if (transform.name() != "identity") None else Some(transform.references().head.fieldNames().mkString("."))
}
