package org.apache.spark.sql.delta.usespark

import java.io.FileNotFoundException
import java.net.URI

import scala.annotation.tailrec

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.{Action, AddFile, RemoveFile}
import org.apache.spark.sql.delta.util.FileNames

/**
 * Files that the newest commits of a version have added. The driver reads these commits, while Delta replays the whole
 * log in a Spark job.
 */
final class RecentFiles(snapshot: Snapshot) {
  private val MaxCommits = 20
  private val MaxBytes = 1000000L

  private val log = snapshot.deltaLog
  private val conf = log.newDeltaHadoopConf()
  private val files = log.logPath.getFileSystem(conf)

  // A catalog that coordinates commits may keep the newest ones elsewhere.
  private val newest = snapshot.logSegment.deltas
    .map(_.getPath)
    .filterNot(FileNames.isCompactedDeltaFile)
    .map(path => FileNames.deltaVersion(path) -> path)
    .toMap

  /**
   * The live ones of the files with these paths, as in the log. None if the newest commits do not name all of them, and
   * for absolute paths, which Delta spells in several ways.
   */
  def live(paths: Iterable[String]): Option[Seq[AddFile]] =
    if (paths.exists(path => new Path(new URI(path)).isAbsolute)) None
    else liveAt(snapshot.version, paths.toSet, Nil, MaxBytes)

  // Writers escape paths in several ways, and Delta compares them spelled like this.
  private def spelled(path: String): String = new Path(new URI(path)).toUri.toString

  @tailrec private def liveAt(
      version: Long,
      left: Set[String],
      found: Seq[AddFile],
      bytes: Long
  ): Option[Seq[AddFile]] =
    if (left.isEmpty) Some(found)
    else {
      val path = newest.getOrElse(version, FileNames.unsafeDeltaFile(log.logPath, version))
      val size = if (version < 0 || version <= snapshot.version - MaxCommits) None else sizeOf(path).filter(_ <= bytes)
      if (size.isEmpty) None
      else {
        val actions = log.store.read(path, conf).map(Action.fromJson)
        // A commit that adds and removes a path replaces the deletion vector of the file.
        val added = actions
          .collect { case file: AddFile => file.copy(path = spelled(file.path), dataChange = false) }
          .filter(file => left(file.path))
        val named = added.map(_.path) ++ actions.collect { case file: RemoveFile => spelled(file.path) }
        liveAt(version - 1, left -- named, found ++ added, bytes - size.get)
      }
    }

  private def sizeOf(commit: Path): Option[Long] =
    try Some(files.getFileStatus(commit).getLen)
    catch { case _: FileNotFoundException => None }
}
