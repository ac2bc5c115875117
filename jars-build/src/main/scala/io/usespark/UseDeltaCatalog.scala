package io.usespark

import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{Identifier, Table}
import org.apache.spark.sql.delta.catalog.{DeltaCatalog, DeltaTableV2}
import org.apache.spark.sql.types.StructType

/** `spark_catalog`: Delta's catalog, which also finds `<table>.<virtual table>` by name and by path. */
class UseDeltaCatalog extends DeltaCatalog {
  override def loadTable(identifier: Identifier): Table =
    virtualTable(identifier).getOrElse(super.loadTable(identifier))

  override def tableExists(identifier: Identifier): Boolean =
    virtualTable(identifier).isDefined || super.tableExists(identifier)

  private def virtualTable(identifier: Identifier): Option[Table] = {
    val parts = identifier.namespace()
    Bridge.declarations().virtualTable(identifier.name()).flatMap { schema: StructType =>
      // `t.optimizations` is table t of the current database, unless a database t has a table of that name.
      if (parts.isEmpty || (parts.length == 1 && super.tableExists(identifier))) None
      else {
        val owner = if (parts.length == 1) SparkSession.active.catalog.currentDatabase +: parts else parts
        try
          super.loadTable(Identifier.of(owner.init, owner.last)) match {
            case delta: DeltaTableV2 if delta.tableExists =>
              Some(new VirtualTable(Identifiers.quoted(name() +: owner.toSeq), identifier.name().toLowerCase, schema))
            case _ => None
          }
        catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }
      }
    }
  }
}
