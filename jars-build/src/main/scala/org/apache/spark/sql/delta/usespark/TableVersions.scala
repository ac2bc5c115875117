package org.apache.spark.sql.delta.usespark

import java.sql.Timestamp

import io.usespark.TableState
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders, Row, SparkSession, classic}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, DeletionVectorDescriptor, SingleAction}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.implicits._
import org.apache.spark.sql.delta.util.{DeltaFileOperations, FileNames}
import org.apache.spark.sql.functions.{col, struct}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * The versions of a table: which the log can make, the files that each needs, and the log behind them. Paths are
 * absolute and not URL-encoded.
 */
final class TableVersions(session: SparkSession, table: DeltaTableV2) {
  private val log = table.deltaLog
  private val history = new DeltaHistoryManager(log)
  private val places = new FilePlaces(
    log.dataPath.getFileSystem(log.newDeltaHadoopConf()).makeQualified(log.dataPath).toString
  )

  /** The oldest version that the log can make. */
  def oldest: Long = history.getEarliestRecreatableCommit

  def newest: Long = table.update().version

  /** The newest version at a time; the oldest one in the log, or -1, if all commits are later. */
  def at(millis: Long): Long =
    try history.getActiveCommitAtTime(new Timestamp(millis), table.catalogTable, true, false, true).version
    catch { case _: DeltaErrors.TimestampEarlierThanCommitRetentionException => -1L }

  /** The time of a version's commit; the log must be able to make the version. */
  def timeOf(version: Long): Long = snapshotAt(version).timestamp

  /** A version; the log must be able to make it. */
  def state(version: Long): TableState = new TableState(snapshotAt(version))

  private def snapshotAt(version: Long): Snapshot = Snapshots.at(table, version)

  /** `path` and `size` of the data files and deletion vectors that a version needs. */
  def files(version: Long): DataFrame = session.withActive {
    val places = this.places
    snapshotAt(version).allFiles
      .flatMap(file => places.of(file.path, file.size, file.deletionVector))(places.pairs)
      .toDF("path", "size")
  }

  /** `path` and `deletion_vector` of the live files of a version that have deletion vectors, as the log names them. */
  def filesWithDeletes(version: Long): DataFrame = session.withActive {
    snapshotAt(version).allFiles
      .where("deletionVector IS NOT NULL")
      .map(file => (file.path, file.deletionVector.uniqueId))(places.names)
      .toDF("path", "deletion_vector")
  }

  /**
   * What the commits of some versions name: `version`, `is_added` (or else removed), `path` and `size` (-1 if unknown) of
   * data files, deletion vectors and files of the change feed. Fails if the log lacks one of the commits.
   */
  def changes(first: Long, last: Long): DataFrame = session.withActive {
    val places = this.places
    val commits = if (first > last) Nil else commitFiles(first, last)
    DeltaLogFileIndex(DeltaLogFileIndex.COMMIT_FILE_FORMAT, commits)
      .map { index =>
        val action = struct(Action.logSchema.fieldNames.toSeq.map(col): _*)
        log
          .loadIndex(index, Action.logSchema)
          .where("add IS NOT NULL OR remove IS NOT NULL OR cdc IS NOT NULL")
          .select(col(DeltaLogFileIndex.COMMIT_VERSION_COLUMN), action)
          .as[(Long, SingleAction)](places.versioned)
          .flatMap { case (version, action) => places.changes(version, action) }(places.changed)
          .toDF("version", "is_added", "path", "size")
      }
      .getOrElse(
        session.createDataFrame(
          java.util.List.of[Row](),
          new StructType().add("version", "long").add("is_added", "boolean").add("path", "string").add("size", "long")
        )
      )
  }

  private def commitFiles(first: Long, last: Long): Seq[FileStatus] = {
    // A catalog that coordinates commits may keep the newest ones elsewhere.
    val recent = table.update().logSegment.deltas.filterNot(file => FileNames.isCompactedDeltaFile(file.getPath))
    val commits = (logFiles.filter(file => FileNames.isBackfilledDeltaFile(file.getPath)) ++ recent)
      .map(file => FileNames.deltaVersion(file.getPath) -> file)
      .toMap
    (first to last).map { version =>
      commits.getOrElse(version, throw new IllegalStateException(s"the log at ${log.logPath} lacks version $version"))
    }
  }

  /** The files among `paths` that the file system has. Spark tasks look at each. */
  def existing(paths: DataFrame, parallelism: Int): DataFrame = {
    val conf = session.sparkContext.broadcast(new SerializableConfiguration(log.newDeltaHadoopConf()))
    val rows = paths.rdd.map(_.getString(0)).repartition(parallelism).filter { name =>
      val path = new Path(name)
      path.getFileSystem(conf.value.value).exists(path)
    }
    session.createDataFrame(rows.map(Row(_)), new StructType().add("path", "string"))
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
    val made = Snapshots.checkpoint(session, table, snapshotAt(version))
    if (last.forall(_.version < version)) log.writeLastCheckpointFile(log, made, addChecksum = true)
  }

  /**
   * Loads the newest version as a new session does: the milliseconds that it takes, and the number and bytes of the log
   * files that it reads.
   */
  def load: Array[Long] = session.withActive {
    // Delta keeps a log per path and options of the file system. The entry made here has no state and expires.
    val options = log.options + ("fs.use.load" -> java.util.UUID.randomUUID.toString)
    val begin = System.nanoTime
    val loaded =
      DeltaLog.forTable(session.asInstanceOf[classic.SparkSession], log.dataPath, options, table.catalogTable)
    val snapshot = loaded.unsafeVolatileSnapshot
    try {
      snapshot.allFiles.count()
      val millis = (System.nanoTime - begin) / 1000000
      val (checkpoint, segment) = (snapshot.checkpointProvider, snapshot.logSegment)
      val files =
        CheckpointFiles.count(session.asInstanceOf[classic.SparkSession], log, checkpoint) + segment.deltas.size
      Array(millis, files.toLong, checkpoint.effectiveCheckpointSizeInBytes() + segment.deltas.map(_.getLen).sum)
    } finally snapshot.uncache()
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

/** Where the files are that actions of a log name. */
final private class FilePlaces(root: String) extends Serializable {

  /** A data file and its deletion vector, with their sizes. */
  def of(path: String, size: Long, vector: DeletionVectorDescriptor): Seq[(String, Long)] =
    (absolute(path) -> size) +: Option(vector).filter(_.isOnDisk).toSeq.map { stored =>
      qualified(stored.absolutePath(new Path(root))) -> stored.sizeInBytes.toLong
    }

  def changes(version: Long, action: SingleAction): Seq[(Long, Boolean, String, Long)] = {
    val added = Option(action.add).toSeq.flatMap(file => of(file.path, file.size, file.deletionVector)) ++
      Option(action.cdc).toSeq.map(file => absolute(file.path) -> file.size)
    val removed =
      Option(action.remove).toSeq.flatMap(file => of(file.path, file.size.getOrElse(-1L), file.deletionVector))
    added.map { case (path, size) => (version, true, path, size) } ++
      removed.map { case (path, size) => (version, false, path, size) }
  }

  private def absolute(path: String): String = qualified(DeltaFileOperations.absolutePath(root, path))

  private def qualified(path: Path): String = path.makeQualified(new Path(root).toUri, new Path(root)).toString

  def pairs: Encoder[(String, Long)] = Encoders.tuple(Encoders.STRING, Encoders.scalaLong)
  def names: Encoder[(String, String)] = Encoders.tuple(Encoders.STRING, Encoders.STRING)
  def changed: Encoder[(Long, Boolean, String, Long)] =
    Encoders.tuple(Encoders.scalaLong, Encoders.scalaBoolean, Encoders.STRING, Encoders.scalaLong)
  def versioned: Encoder[(Long, SingleAction)] =
    Encoders.tuple(Encoders.scalaLong, implicitly[Encoder[SingleAction]])
}
