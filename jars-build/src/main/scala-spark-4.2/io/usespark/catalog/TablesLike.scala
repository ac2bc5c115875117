package io.usespark

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog, TableInfo}
import org.apache.spark.sql.delta.catalog.{DeltaCatalog, DeltaTableV2}

/** CREATE TABLE … LIKE. */
trait TablesLike extends DeltaCatalog {
  protected def notifying(make: => Table): Table

  override def createTableLike(identifier: Identifier, info: TableInfo, source: Table): Table =
    notifying {
      val additions = source match {
        case delta: DeltaTableV2 =>
          val own = NewTable.withoutWordsOfCatalog(info.properties.asScala.toMap)
          val isQbeast = IndexedTables.isQbeast(info.properties.get(TableCatalog.PROP_PROVIDER))
          val properties = if (isQbeast) IndexedTables.ofQbeast(own) else own
          properties ++ MetadataCheck.copied(delta.initialSnapshot.metadata, properties)
        case _ => Map.empty[String, String] // IndexedWriteRules checks the command that creates it
      }
      super.createTableLike(identifier, withProperties(info, additions), source)
    }

  private def withProperties(info: TableInfo, additions: Map[String, String]): TableInfo =
    if (additions.isEmpty) info
    else
      new TableInfo.Builder()
        .withColumns(info.columns)
        .withPartitions(info.partitions)
        .withConstraints(info.constraints)
        .withProperties((info.properties.asScala ++ additions).asJava)
        .build()
}
