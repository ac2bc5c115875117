package org.apache.spark.sql.delta.usespark

import java.io.FileNotFoundException
import java.net.URI

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.{Action, AddFile, RemoveFile}
import org.apache.spark.sql.delta.util.FileNames

/**
 * Files of a version that its newest commits have added. The driver reads these commits, while the files of a whole
 * version take a Spark job that replays its log.
 */
object RecentFiles {
  private val MaxCommits = 20
  private val MaxBytes = 1000000L

  /** The live ones of the files with these paths, as in the log; None if the newest commits do not name all of them. */
  def live(snapshot: Snapshot, paths: Iterable[String]): Option[Seq[AddFile]] = {
    val log = snapshot.deltaLog
    val conf = log.newDeltaHadoopConf()
    val files = log.logPath.getFileSystem(conf)
    // A catalog that coordinates commits may keep the newest ones elsewhere. Older ones may be behind a checkpoint.
    val recent = snapshot.logSegment.deltas
      .map(_.getPath)
      .filterNot(FileNames.isCompactedDeltaFile)
      .map(path => FileNames.deltaVersion(path) -> path)
      .toMap
    val left = mutable.Set.from(paths)
    val found = Seq.newBuilder[AddFile]
    var bytes = MaxBytes
    var version = snapshot.version
    // Delta has other spellings of an absolute path.
    var readable = !left.exists(path => new Path(new URI(path)).isAbsolute)
    while (readable && left.nonEmpty) {
      val path = recent.getOrElse(version, FileNames.unsafeDeltaFile(log.logPath, version))
      bytes -= (if (version < 0 || version <= snapshot.version - MaxCommits) bytes + 1 else sizeOf(files, path))
      readable = bytes >= 0
      if (readable) {
        val actions = log.store.read(path, conf).map(Action.fromJson)
        // A commit that adds and removes a path replaces the deletion vector of the file.
        val added = actions.collect { case file: AddFile if left(file.path) => file.copy(dataChange = false) }
        found ++= added
        left --= added.map(_.path)
        left --= actions.collect { case file: RemoveFile => file.path }
        version -= 1
      }
    }
    Option.when(readable)(found.result())
  }

  /** The size of a commit, more than are read if it is no longer there. */
  private def sizeOf(files: org.apache.hadoop.fs.FileSystem, commit: Path): Long =
    try files.getFileStatus(commit).getLen
    catch { case _: FileNotFoundException => MaxBytes + 1 }
}
