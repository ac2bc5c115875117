package org.apache.spark.sql.delta.usespark

import java.sql.Timestamp
import java.{util => ju}

import scala.annotation.tailrec

import io.usespark.{DeltaAccess, TableState}
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.{Column, DataFrame, Row, SparkSession, classic}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, DeletionVectorDescriptor}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.VacuumCommand
import org.apache.spark.sql.delta.util.{DeltaFileOperations, FileNames}
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.types.LongType
import org.apache.spark.util.SerializableConfiguration

/**
 * The versions of a table: which the log can make, the files that each needs, and the log behind them. Paths are
 * absolute and not URL-encoded.
 */
final class TableVersions(session: SparkSession, table: DeltaTableV2) {
  private val log = table.deltaLog
  private val history = new DeltaHistoryManager(log)
  private val filePlaces = new FilePlaces(
    log.dataPath.getFileSystem(log.newDeltaHadoopConf()).makeQualified(log.dataPath).toString
  )

  /** The oldest version that the log can make. */
  def oldest: Long = history.getEarliestRecreatableCommit

  def newest: Long = table.update().version

  /** The newest version at a time. If all commits are later: the oldest one in the log if `orOldest`, or else -1. */
  def at(millis: Long, orOldest: Boolean): Long =
    try history.getActiveCommitAtTime(new Timestamp(millis), table.catalogTable, true, false, orOldest).version
    catch { case _: DeltaErrors.TimestampEarlierThanCommitRetentionException => -1L }

  /** The time of a version's commit; the log must be able to make the version. */
  def timeOf(version: Long): Long = snapshotAt(version).timestamp

  /** A version; the log must be able to make it. */
  def state(version: Long): TableState = new TableState(snapshotAt(version), table.catalogTable)

  private def snapshotAt(version: Long): Snapshot =
    session.withActive(log.getSnapshotAt(version, catalogTableOpt = table.catalogTable))

  /** The path and size of a data file and of its deletion vector, as an array, for a column of [[NamedFile]]. */
  def places(file: Column): Column = filePlaces.column(file)

  /**
   * The actions of the commits of some versions, which must all be in the log; of those that are there if `first` is -1.
   */
  def commits(first: Long, last: Long): DataFrame = session.withActive {
    // A catalog that coordinates commits may keep the newest ones elsewhere.
    val recent = table.update().logSegment.deltas.filterNot(file => FileNames.isCompactedDeltaFile(file.getPath))
    val commits = (logFiles.filter(file => FileNames.isBackfilledDeltaFile(file.getPath)) ++ recent)
      .map(file => FileNames.deltaVersion(file.getPath) -> file)
      .toMap
    val versions = if (first < 0) commits.keys.filter(_ <= last).toSeq else first to last
    val chosen = versions.map { version =>
      commits.getOrElse(version, throw new IllegalStateException(s"the log at ${log.logPath} lacks version $version"))
    }
    DeltaLogFileIndex(DeltaLogFileIndex.COMMIT_FILE_FORMAT, chosen)
      .map(log.loadIndex(_, Action.logSchema))
      .getOrElse(session.createDataFrame(ju.List.of[Row](), Action.logSchema.add("version", LongType)))
  }

  /** The files and empty folders among `paths` that exist, in the form of Delta's inventories. Spark tasks look at each. */
  def existing(paths: DataFrame, parallelism: Int): DataFrame = {
    val conf = session.sparkContext.broadcast(new SerializableConfiguration(log.newDeltaHadoopConf()))
    val rows = paths.rdd.map(_.getString(0)).repartition(parallelism).flatMap { name =>
      val path = new Path(name)
      SingleFiles.existing(path.getFileSystem(conf.value.value), path).map { status =>
        if (status.isDirectory) Row(name, 0L, true, 0L)
        else Row(name, status.getLen, false, status.getModificationTime)
      }
    }
    session.createDataFrame(rows, VacuumCommand.INVENTORY_SCHEMA)
  }

  // ------------------------------------------------------------------------------------------------------- the log

  /** Why the log must be left to Delta; empty if it may be cleaned up. */
  def logGuard: String = {
    val snapshot = table.update()
    if (!log.enableExpiredLogCleanup(snapshot.metadata)) "delta.enableExpiredLogCleanup is false"
    else if (snapshot.protocol.isFeatureSupported(CheckpointProtectionTableFeature))
      "the table has checkpointProtection"
    else if (snapshot.isCatalogOwned || snapshot.tableCommitCoordinatorClientOpt.isDefined)
      "a catalog coordinates the commits of the table"
    else ""
  }

  /** The version of the newest checkpoint that is not newer than a version; -1 without one. */
  def checkpointBefore(version: Long): Long =
    log.findLastCompleteCheckpointBefore(version + 1).fold(-1L)(_.version)

  /** Writes a checkpoint of a version. */
  def checkpoint(version: Long): Unit = session.withActive {
    val last = log.readLastCheckpointFile()
    val made = DeltaAccess.writeCheckpoint(log, snapshotAt(version), table.catalogTable)
    if (last.forall(_.version < version)) log.writeLastCheckpointFile(log, made, addChecksum = true)
  }

  /**
   * Loads the newest version as a new session does: the milliseconds that it takes, and the number and bytes of the log
   * files that it reads.
   */
  def load: Array[Long] = session.withActive {
    // Delta keeps a log per path and options of the file system.
    val options = log.options + ("fs.use.load" -> java.util.UUID.randomUUID.toString)
    val begin = System.nanoTime
    val loaded =
      DeltaLog.forTable(session.asInstanceOf[classic.SparkSession], log.dataPath, options, table.catalogTable)
    val snapshot = loaded.unsafeVolatileSnapshot
    try {
      snapshot.allFiles.count()
      val millis = (System.nanoTime - begin) / 1000000
      val (checkpoint, segment) = (snapshot.checkpointProvider, snapshot.logSegment)
      val files = filesOf(checkpoint) + segment.deltas.size
      Array(millis, files.toLong, checkpoint.effectiveCheckpointSizeInBytes() + segment.deltas.map(_.getLen).sum)
    } finally {
      snapshot.uncache()
      // Otherwise Delta keeps the log for an hour, with the files of its shuffles.
      DeltaLog.getOrCreateCache(session.sessionState.conf).asMap().values().remove(loaded)
    }
  }

  /** The number of files of a checkpoint, sidecar files among them. */
  @tailrec private def filesOf(checkpoint: CheckpointProvider): Int = checkpoint match {
    case lazily: LazyCompleteCheckpointProvider => filesOf(lazily.underlyingCheckpointProvider)
    case version2: V2CheckpointProvider => 1 + version2.sidecarFiles.size
    case other => other.topLevelFiles.size
  }

  /** Number and bytes of the log files before a version. */
  def logBefore(version: Long): Array[Long] = {
    val entries = entriesBefore(version)
    Array(entries.size.toLong, entries.map(_.getLen).sum)
  }

  /** Deletes the log files before a version, oldest first, so that the rest of the log has no gap at any moment. */
  def deleteLogBefore(version: Long): Array[Long] = {
    require(checkpointBefore(version) == version, s"there is no checkpoint of version $version")
    val files = log.logPath.getFileSystem(log.newDeltaHadoopConf())
    val deleted = entriesBefore(version).filter(entry => files.delete(entry.getPath, false))
    Array(deleted.size.toLong, deleted.map(_.getLen).sum)
  }

  private def logFiles: Seq[FileStatus] =
    log.logPath.getFileSystem(log.newDeltaHadoopConf()).listStatus(log.logPath).toSeq.filter(_.isFile)

  private def entriesBefore(version: Long): Seq[FileStatus] =
    logFiles
      .flatMap(entry => lastVersion(entry.getPath).map(_ -> entry))
      .filter(_._1 < version)
      .sortBy { case (last, entry) => (last, entry.getPath.getName) }
      .map(_._2)

  /** The last version that a file of the log is about. */
  private def lastVersion(path: Path): Option[Long] =
    if (FileNames.isCompactedDeltaFile(path)) Some(FileNames.compactedDeltaVersions(path)._2)
    else if (FileNames.isCheckpointFile(path) || FileNames.isDeltaFile(path) || FileNames.isChecksumFile(path))
      FileNames.getFileVersionOpt(path)
    else None
}

/** What an action of a log says of a file: its path, its size, and its deletion vector or null. */
final case class NamedFile(path: String, size: Long, deletionVector: DeletionVectorDescriptor)

/** Where the files are that actions of a log name. */
final private class FilePlaces(root: String) extends Serializable {
  private val of = udf { (file: NamedFile) =>
    (qualified(DeltaFileOperations.absolutePath(root, file.path)) -> file.size) +:
      Option(file.deletionVector).filter(_.isOnDisk).toSeq.map { stored =>
        qualified(stored.absolutePath(new Path(root))) -> stored.sizeInBytes.toLong
      }
  }

  def column(file: Column): Column = of(file)

  private def qualified(path: Path): String = path.makeQualified(new Path(root).toUri, new Path(root)).toString
}
