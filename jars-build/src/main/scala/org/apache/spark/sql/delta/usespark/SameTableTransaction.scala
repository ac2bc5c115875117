package org.apache.spark.sql.delta.usespark

import java.io.FileNotFoundException

import scala.util.control.NonFatal

import io.delta.exceptions.MetadataChangedException
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.Action
import org.apache.spark.sql.delta.util.FileNames

/**
 * A transaction that commits only to the log that it has read.
 *
 * `DROP TABLE` and `CREATE TABLE` begin a log anew, at the same path. Delta knows a log by its path, and would add the
 * commit, its checkpoint and its checksum to the log of the other table, which could not be read any more.
 */
trait SameTableTransaction extends OptimisticTransaction {

  /** Fails as a conflict if the table was dropped or replaced. */
  def checkTable(): Unit = if (!isTableThere)
    throw new MetadataChangedException(s"The table at ${deltaLog.dataPath} was dropped or replaced by another one.")

  private def isTableThere: Boolean = {
    val segment = snapshot.logSegment
    val newest = segment.deltas.lastOption.orElse(segment.checkpointProvider.topLevelFiles.lastOption)
    newest.forall(isUnchanged) || isSameTable
  }

  private def logFiles: FileSystem = deltaLog.logPath.getFileSystem(deltaLog.newDeltaHadoopConf())

  private def isUnchanged(file: FileStatus): Boolean =
    try {
      val now = logFiles.getFileStatus(file.getPath)
      now.getModificationTime == file.getModificationTime && now.getLen == file.getLen
    } catch { case _: FileNotFoundException => false }

  /** Delta may be unable to load the log of another table after the former one. */
  private def isSameTable: Boolean =
    try deltaLog.update(catalogTableOpt = catalogTable).metadata.id == snapshot.metadata.id
    catch { case NonFatal(_) => false }

  override protected def commitImpl(
      actions: Seq[Action],
      op: DeltaOperations.Operation,
      canSkipEmptyCommits: Boolean,
      tags: Map[String, String]
  ): Option[Long] = {
    checkTable()
    super.commitImpl(actions, op, canSkipEmptyCommits, tags)
  }

  override protected def checkForConflicts(
      checkVersion: Long,
      info: CurrentTransactionInfo,
      attemptNumber: Int,
      level: IsolationLevel
  ): (Long, CurrentTransactionInfo) = {
    checkTable()
    super.checkForConflicts(checkVersion, info, attemptNumber, level)
  }

  /** They write the checkpoint and the checksum. The commit is there: whatever fails now must not fail the statement. */
  override protected def runPostCommitHooks(committed: CommittedTransaction): Unit = {
    if (!isGone) super.runPostCommitHooks(committed)
    if (isGone) {
      val deleted = deleteFromOtherLog(committed.committedVersion)
      logWarning(s"The table at ${deltaLog.dataPath} was dropped during a commit; deleted from the new log: $deleted")
    }
  }

  private def isGone: Boolean =
    try !isTableThere
    catch { case NonFatal(_) => false }

  /**
   * Deletes what a commit has left in the log of another table; returns the names of the files.
   *
   * While the log has all commits from 0 on, it needs no checkpoint. A commit behind a gap belongs to no table. A log
   * that begins with a checkpoint stays, even if its table could not be loaded for another reason.
   */
  private[usespark] def deleteFromOtherLog(version: Long): Seq[String] =
    try {
      val there = logFiles.listStatus(deltaLog.logPath).toSeq.filter(_.isFile).map(_.getPath)
      val before = there.filter(FileNames.isDeltaFile).map(FileNames.deltaVersion).filter(_ < version).sorted
      // A listing may be late.
      val isBehindGap =
        before.size < version && !logFiles.exists(FileNames.unsafeDeltaFile(deltaLog.logPath, version - 1))
      val isCleaned = before.isEmpty && there.exists(FileNames.isCheckpointFile)
      if (isCleaned || before.zipWithIndex.exists { case (commit, index) => commit != index }) Nil
      else
        there
          .filter(file => FileNames.getFileVersionOpt(file).contains(version) || isLastCheckpoint(file, version))
          .filter(file => isBehindGap || !FileNames.isDeltaFile(file))
          .filter(file => logFiles.delete(file, false))
          .map(_.getName)
    } catch {
      case NonFatal(error) =>
        logWarning(s"The log at ${deltaLog.logPath} may have a checkpoint of a former table", error)
        Nil
    }

  private def isLastCheckpoint(file: Path, version: Long): Boolean =
    file.getName == "_last_checkpoint" && deltaLog.readLastCheckpointFile().exists(_.version == version)
}
