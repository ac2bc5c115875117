package io.usespark

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, ExternalCatalog}
import org.apache.spark.sql.delta.sources.DeltaSourceUtils

/** The Delta tables in the metastore of the session's catalog; their logs are not read. */
object Metastore extends Logging {
  private val Batch = 500

  /** The Delta tables of all databases, or of one: a JSON array of [database, table, location, provider]. */
  def deltaTables(session: SparkSession, database: String): String = {
    val catalog = session.asInstanceOf[classic.SparkSession].sessionState.catalog.externalCatalog
    val rows = new ObjectMapper().createArrayNode()
    for {
      database <- if (database.isEmpty) catalog.listDatabases() else Seq(database)
      names <- readable(s"database $database")(catalog.listTables(database)).getOrElse(Nil).grouped(Batch)
      table <- named(catalog, database, names)
      if table.tableType != CatalogTableType.VIEW && DeltaSourceUtils.isDeltaTable(table.provider)
      location <- table.storage.locationUri
    } rows
      .addArray()
      .add(database)
      .add(table.identifier.table)
      .add(new Path(location).toString)
      .add(table.provider.getOrElse(""))
    rows.toString
  }

  /** One request for all of them, or one for each where a broken table spoils that. */
  private def named(catalog: ExternalCatalog, database: String, names: Seq[String]): Seq[CatalogTable] =
    try catalog.getTablesByName(database, names)
    catch {
      case NonFatal(_) =>
        names.flatMap(name => readable(s"table $database.$name")(catalog.getTable(database, name)))
    }

  private def readable[T](what: String)(body: => T): Option[T] =
    try Some(body)
    catch {
      case NonFatal(error) =>
        logWarning(s"The metastore's entry of $what cannot be read: $error")
        None
    }
}
