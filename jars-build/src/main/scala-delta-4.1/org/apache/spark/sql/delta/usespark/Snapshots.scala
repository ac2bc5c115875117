package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.{Checkpoints, LastCheckpointInfo, Snapshot}
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** Versions of a table, and their checkpoints. */
object Snapshots {
  def at(table: DeltaTableV2, version: Long): Snapshot = table.getSnapshotAt(version)
  def checkpoint(session: SparkSession, table: DeltaTableV2, snapshot: Snapshot): LastCheckpointInfo =
    Checkpoints.writeCheckpoint(session, table.deltaLog, snapshot, table.catalogTable)
}
