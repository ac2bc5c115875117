package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.VacuumCommandImpl

/** The parts of Delta's vacuum that only its subclasses can call. */
final class DeltaVacuum extends VacuumCommandImpl {
  def started(
      session: SparkSession,
      table: DeltaTableV2,
      paths: Dataset[String],
      bytes: Long,
      retentionMillis: Long,
      defaultMillis: Long
  ): Unit = logVacuumStart(session, table, paths, bytes, Some(retentionMillis), defaultMillis)

  def ended(
      session: SparkSession,
      table: DeltaTableV2,
      deleted: Option[Long],
      folders: Option[Long]
  ): Unit = logVacuumEnd(session, table, Map.empty, deleted, folders)
}
