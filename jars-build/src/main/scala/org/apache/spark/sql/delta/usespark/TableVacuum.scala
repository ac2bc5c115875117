package org.apache.spark.sql.delta.usespark

import java.io.{FileNotFoundException, OutputStream}
import java.util.concurrent.TimeUnit
import java.{util => ju}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{LastVacuumInfo, VacuumCommand}
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.apache.spark.sql.functions.col
import org.apache.spark.util.{ManualClock, SerializableConfiguration, ThreadUtils}

/**
 * Delta's vacuum of a table, in steps that Python requests. Paths are absolute and not URL-encoded, as Delta reports
 * them.
 *
 * Delta rounds a retention to whole hours. Here its clock is set so that exactly the files that are older than
 * `deleteBefore` may be deleted.
 *
 * @param session settings of the work
 * @param deleteBefore epoch milliseconds
 * @param retentionHours the retention for Delta's history, in whole hours
 */
final class TableVacuum(session: SparkSession, table: DeltaTableV2, deleteBefore: Long, retentionHours: Long) {
  private val log = table.deltaLog
  private val retentionMillis = TimeUnit.HOURS.toMillis(retentionHours)
  private val steps = new DeltaVacuum
  private val clock = new ManualClock(deleteBefore + retentionMillis)
  private val hadoopConf = log.newDeltaHadoopConf()
  private val files = log.dataPath.getFileSystem(hadoopConf)
  private val root = files.makeQualified(log.dataPath).toString

  /** The files below the table, in the form of Delta's inventories. Spark tasks list them. */
  def listing(parallelism: Int): DataFrame = {
    val hidden = hiddenNames()
    val taskConf = session.sparkContext.broadcast(new SerializableConfiguration(hadoopConf))
    val listed = DeltaFileOperations.recursiveListDirs(session, Seq(root), taskConf, hidden, hidden, Some(parallelism))
    below(listed.toDF())
  }

  /**
   * The rows of an inventory that are below the table. A path with a hidden name in it is left out, as in a listing,
   * and so is one that leads elsewhere, such as `..`, because Delta compares the text of paths.
   */
  def below(inventory: DataFrame): DataFrame = {
    val hidden = hiddenNames()
    val start = root + "/"
    val rows = inventory.select(VacuumCommand.INVENTORY_SCHEMA.map(field => col(field.name)): _*).rdd.filter { row =>
      !row.anyNull && row.getString(0).startsWith(start) && {
        val names = row.getString(0).drop(start.length).stripSuffix("/").split("/", -1)
        // Delta would read a colon in the first name as the end of a scheme.
        !names.head.contains(':') &&
        !names.exists(name => name.isEmpty || name == "." || name == ".." || hidden(name))
      }
    }
    session.createDataFrame(rows, VacuumCommand.INVENTORY_SCHEMA)
  }

  /**
   * The files without those that have one of these reasons and lie in a folder with a log of its own: they are another
   * table's, and no version of this one tells whether it needs them. Spark tasks look at each folder once.
   */
  def outsideOfOtherTables(files: DataFrame, reasons: ju.List[String]): DataFrame = {
    val conf = session.sparkContext.broadcast(new SerializableConfiguration(hadoopConf))
    val (path, reason, top) = (files.schema.fieldIndex("path"), files.schema.fieldIndex("reason"), root)
    val unknown = reasons.asScala.toSet
    val rows = files.rdd.mapPartitions { rows =>
      val known = mutable.Map(top -> false)
      def isOther(folder: Path): Boolean = {
        val name = folder.toString
        if (!known.contains(name)) {
          val hasLog = folder.getFileSystem(conf.value.value).exists(new Path(folder, "_delta_log"))
          known(name) = hasLog || isOther(folder.getParent)
        }
        known(name)
      }
      rows.filterNot(row => unknown(row.getString(reason)) && isOther(new Path(row.getString(path)).getParent))
    }
    session.createDataFrame(rows, files.schema)
  }

  /**
   * Delta's vacuum, whose result are the paths to delete in a dry run. It looks at the newest version and at `inventory`,
   * or if that is null, at its own list of files.
   */
  def run(mode: String, inventory: DataFrame, dryRun: Boolean): DataFrame =
    silently {
      VacuumCommand.gc(
        session,
        table,
        dryRun,
        Some(retentionHours.toDouble),
        Option(inventory),
        Some(mode),
        Map.empty,
        clock
      )
    }

  /** Records the start of a vacuum in the log, as Delta does. */
  def started(paths: DataFrame, bytes: Long): Unit = {
    import org.apache.spark.sql.delta.implicits._
    val default = DeltaLog.tombstoneRetentionMillis(table.update().metadata)
    steps.started(session, table, paths.as[String], bytes, retentionMillis, default)
  }

  /**
   * Deletes files and empty folders, except those that are too young.
   *
   * @return for each path the bytes that were deleted, -1 if nothing was
   */
  def delete(paths: ju.List[String], threads: Int): Array[Long] = {
    paths.forEach(path => require(path.startsWith(root + "/"), s"$path is not below $root"))
    ThreadUtils
      .parmap(paths.asScala.toSeq, "use-vacuum", threads)(p => SingleFiles.delete(files, new Path(p), deleteBefore))
      .toArray
  }

  /** Records the end of a vacuum in the log, as Delta does. */
  def ended(deleted: Long, folders: Long): Unit =
    silently(steps.ended(session, table, Some(deleted), Some(folders)))

  /** Records in the log that a vacuum failed, as Delta does. */
  def failed(): Unit = silently(steps.ended(session, table, None, None))

  /** Notes for the next vacuum in mode LITE that this version is covered. */
  def cover(version: Long): Unit =
    LastVacuumInfo.persistLastVacuumInfo(LastVacuumInfo(Some(version).filter(_ >= 0)), log)

  /** Delta prints a summary to standard output, which belongs to the caller. */
  private def silently[T](work: => T): T = Console.withOut(OutputStream.nullOutputStream())(work)

  private def hiddenNames(): String => Boolean = {
    val metadata = table.update().metadata
    val (partitions, iceberg) = (metadata.partitionColumns, UniversalFormat.icebergEnabled(metadata))
    DeltaTableUtils.isHiddenDirectory(partitions, _, iceberg)
  }
}

/** Looks at single files, and deletes them. */
private object SingleFiles {

  /** A file, or an empty folder. */
  def existing(files: FileSystem, path: Path): Option[FileStatus] =
    try {
      val status = files.getFileStatus(path)
      Option.unless(status.isDirectory && files.listStatusIterator(path).hasNext)(status)
    } catch { case _: FileNotFoundException => None }

  /** Deletes a file that is older than the retention, or an empty folder; its bytes, -1 if nothing was deleted. */
  def delete(files: FileSystem, path: Path, before: Long): Long =
    existing(files, path)
      .filter(status => status.isDirectory || status.getModificationTime < before)
      .filter(_ => DeltaFileOperations.tryDeleteNonRecursive(files, path))
      .fold(-1L)(status => if (status.isDirectory) 0L else status.getLen)
}
