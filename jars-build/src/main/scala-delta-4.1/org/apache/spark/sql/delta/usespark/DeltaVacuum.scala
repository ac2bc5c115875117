package org.apache.spark.sql.delta.usespark

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.delta.{DeltaHistoryManager, DeltaLog, Snapshot}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.VacuumCommandImpl
import org.apache.spark.util.{Clock, SerializableConfiguration}

/** The parts of Delta's vacuum that only its subclasses can call. */
final class DeltaVacuum extends VacuumCommandImpl with Serializable {

  /** A path below the table as `needed` has it, relative and URL-encoded. */
  def relative(files: FileSystem, root: String, path: String): String = {
    val name = relativize(new Path(path), files, new Path(root), isDir = false)
    require(path.startsWith(root + "/") && !urlEncodedStringToPath(name).isAbsolute, s"$path is not below $root")
    name
  }

  /** The files that the commits in the log removed, in the form of Delta's inventories. */
  def removals(
      session: SparkSession,
      log: DeltaLog,
      root: String,
      conf: Broadcast[SerializableConfiguration],
      version: Long
  ): DataFrame =
    getFilesFromDeltaLog(session, log, root, conf, DeltaHistoryManager.getEarliestDeltaFile(log), version, None).toDF()

  /** The paths that a version needs, or needed within the retention. */
  def needed(
      session: SparkSession,
      root: String,
      snapshot: Snapshot,
      retentionMillis: Long,
      conf: Broadcast[SerializableConfiguration],
      clock: Clock
  ): DataFrame = {
    val config = ValidFilesConfig(
      checkAbsolutePathOnly = false,
      performRetentionSafetyCheck = true,
      relativizeIgnoreError = None,
      dvDiscoveryDisabled = None
    )
    getValidFilesFromSnapshot(session, root, snapshot, Some(retentionMillis), conf, clock, config).validFiles
  }

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
