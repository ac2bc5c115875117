package org.apache.spark.sql.delta.usespark

import io.usespark.{InheritedProperties, MetadataCheck}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaLog, OptimisticTransaction, Snapshot}
import org.apache.spark.sql.delta.actions.Metadata

/**
 * The transaction of ALTER TABLE: what it changes of a table's properties and columns is looked at before the commit, and
 * properties that name a renamed column are changed in the same commit.
 */
class CheckedTransaction(log: DeltaLog, table: Option[CatalogTable], snapshotOpt: Option[Snapshot])
    extends OptimisticTransaction(log, table, snapshotOpt)
    with IndexPropertyCommit {

  /** Delta goes first: it refuses what it cannot do, and gives new columns the names that they are stored under. */
  override protected def updateMetadataInternal(proposed: Metadata, ignoreDefaultProperties: Boolean): Unit = {
    super.updateMetadataInternal(proposed, ignoreDefaultProperties)
    val database = table.flatMap(known => InheritedProperties.databaseOf(known.identifier))
    val checked = MetadataCheck.altered(snapshot.metadata, metadata, database)
    if (checked != metadata) super.updateMetadataInternal(checked, ignoreDefaultProperties)
  }
}
