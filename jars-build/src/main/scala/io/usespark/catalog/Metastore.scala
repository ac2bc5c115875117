package io.usespark

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, ExternalCatalog}
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, TableCatalog}
import org.apache.spark.sql.delta.catalog.DeltaCatalog
import org.apache.spark.sql.delta.sources.DeltaSourceUtils

/** The Delta tables in the metastore of the session's catalog; their logs are not read. */
object Metastore extends Logging {
  private val Batch = 500
  // Those of USE and of Delta know no rights; what extends them may.
  private val Unrestricted = Set[Class[_]](classOf[UseDeltaCatalog], classOf[DeltaCatalog])

  /** Whether the session's catalog restricts tables. The metastore below it knows nothing of that. */
  def isRestricting(session: SparkSession): Boolean = restricts(sessionCatalog(session))

  /** Whether a catalog is one of the deployment, which may hide tables from users or refuse them. */
  private[usespark] def restricts(catalog: CatalogPlugin): Boolean = !Unrestricted.contains(catalog.getClass)

  /** Whether a catalog loads a table for the user of the session. */
  private[usespark] def isLoaded(session: SparkSession, catalog: CatalogPlugin, identifier: Identifier): Boolean =
    catalog match {
      case tables: TableCatalog =>
        try {
          ActiveSession.within(session)(tables.loadTable(identifier))
          true
        } catch {
          case NonFatal(error) =>
            logInfo(s"${catalog.name()} does not load $identifier, which is left out: $error")
            false
        }
      case _ => false
    }

  /** Spark makes the catalog of a session with the settings of the active one. */
  private def sessionCatalog(session: SparkSession): CatalogPlugin = ActiveSession.within(session) {
    session.asInstanceOf[classic.SparkSession].sessionState.catalogManager.catalog("spark_catalog")
  }

  /**
   * The Delta tables of all databases, or of one: a JSON array of [database, table, location, provider].
   *
   * @param all also those that the session's catalog does not load
   */
  def deltaTables(session: SparkSession, database: String, all: Boolean): String = {
    val catalog = session.asInstanceOf[classic.SparkSession].sessionState.catalog.externalCatalog
    val owner = sessionCatalog(session)
    val isChecked = !all && restricts(owner)
    val rows = new ObjectMapper().createArrayNode()
    for {
      database <- if (database.isEmpty) catalog.listDatabases() else Seq(database)
      names <- readable(s"database $database")(catalog.listTables(database)).getOrElse(Nil).grouped(Batch)
      table <- named(catalog, database, names)
      if table.tableType != CatalogTableType.VIEW && DeltaSourceUtils.isDeltaTable(table.provider)
      location <- table.storage.locationUri
      if !isChecked || isLoaded(session, owner, Identifier.of(Array(database), table.identifier.table))
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
