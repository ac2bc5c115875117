package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.delta.catalog.DeltaCatalog
import org.apache.spark.sql.delta.commands.TableCreationModes

/** The table of a name, for a statement that creates or replaces it. */
object ExistingTables {
  def find(
      catalog: DeltaCatalog,
      table: TableIdentifier,
      identifier: Identifier,
      mode: TableCreationModes.CreationMode
  ): Option[CatalogTable] = catalog.getExistingTableIfExists(table)
}
