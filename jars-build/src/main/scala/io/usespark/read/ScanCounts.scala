package io.usespark

import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.{DataSize, PreparedDeltaFileIndex}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper

/** A number of files and their bytes. */
final case class FileCount(files: Long, bytes: Long) {
  def -(other: FileCount): FileCount = FileCount(files - other.files, bytes - other.bytes)

  /** This count, limited to what lies between two others. */
  def between(low: FileCount, high: FileCount): FileCount =
    if (files < low.files || bytes < low.bytes) low
    else if (files > high.files || bytes > high.bytes) high
    else this
}

object FileCount {
  def of(files: Seq[AddFile]): FileCount = FileCount(files.size.toLong, files.map(_.size).sum)

  /** Delta's counts; None if it did not count. */
  private[usespark] def of(size: DataSize): Option[FileCount] =
    for (counted <- Option(size); files <- counted.files; bytes <- counted.bytesCompressed)
      yield FileCount(files, bytes)
}

/**
 * The files of a Delta scan, step by step as they were selected.
 *
 * The file index keeps what the counts need, so they are available as long as the plan is, and nothing is counted for a
 * plan that nobody asks about. Each step removes files from those that the previous step kept:
 * {{{total >= partitions >= statistics >= cubes >= weights >= joins >= read}}}
 *
 * @param index the prepared scan.
 * @param counted all files of the snapshot; None if Delta would have to count them, in a Spark job.
 * @param executed the files that an executed scan listed; None for a scan that was planned only.
 * @param joined the index after the keys of joins; None if they were not looked at.
 */
final class ScanCounts private (
    val index: PreparedDeltaFileIndex,
    counted: Option[FileCount],
    executed: Option[FileCount],
    joined: Option[JoinFileIndex]
) {

  /** The name in the catalog, or the path as delta.`path`. */
  def table: String =
    Identifiers.quoted(index.catalogTableOpt.fold(Seq("delta", index.path.toString))(_.identifier.nameParts))

  private val selected: FileCount = FileCount.of(ScanCounts.candidates(index))

  /** Whether Delta selected only as many files as a LIMIT needs. Then no other step before the cubes counts. */
  val isLimited: Boolean = index.preparedScan.partition == null

  /** All files of the snapshot; None if that is unknown, which happens if its checksum is missing. */
  val total: Option[FileCount] = counted.map(_.between(selected, ScanCounts.Unlimited))

  /** Files left after partition filters. */
  val partitions: FileCount = {
    val highest = total.getOrElse(ScanCounts.Unlimited)
    if (isLimited) total.getOrElse(selected)
    // Delta counts in accumulators, which count twice if a task is repeated.
    else FileCount.of(index.preparedScan.partition).getOrElse(total.getOrElse(selected)).between(selected, highest)
  }

  /** Files left after Delta's statistics, or a LIMIT. */
  def statistics: FileCount = selected

  /** Files left after cubes: those with a block whose cube meets the conditions, whatever its weights. */
  lazy val cubes: FileCount = index match {
    case blocks: BlockFileIndex => blocks.inSpace
    case _ => selected
  }

  /** Files left after weights: those with a block that meets the conditions and the range of weights. */
  lazy val weights: FileCount = FileCount.of(index.preparedScan.files)

  /** Files left after the keys of joins, which are known while the query is running. */
  def joins: FileCount = joined.fold(weights)(_.count)

  /** Files that the scan reads, without those that filters removed while the query was running. */
  def read: FileCount = executed.getOrElse(joins)
}

object ScanCounts extends AdaptiveSparkPlanHelper {
  private[usespark] val Unlimited = FileCount(Long.MaxValue, Long.MaxValue)

  /** The counts of each Delta scan of a physical plan, subqueries included; starts no job. */
  def ofPlan(plan: SparkPlan): Seq[ScanCounts] =
    collectWithSubqueries(plan) { case scan: FileSourceScanExec => ofScan(scan) }.flatten

  /** The counts of one scan; None if it is not a Delta scan, or Delta's file skipping is switched off. */
  def ofScan(scan: FileSourceScanExec): Option[ScanCounts] = scan.relation.location match {
    case joined: JoinFileIndex => Some(new ScanCounts(joined.base, known(joined.base), listed(scan), Some(joined)))
    case index: PreparedDeltaFileIndex => Some(new ScanCounts(index, known(index), listed(scan), None))
    case _ => None
  }

  /** The counts of a planned scan, whose total is counted if it is unknown. */
  private[usespark] def planned(index: PreparedDeltaFileIndex, joined: Option[JoinFileIndex] = None): ScanCounts = {
    val snapshot = index.preparedScan.scannedSnapshot
    new ScanCounts(index, Some(FileCount(snapshot.numOfFiles, snapshot.sizeInBytes)), None, joined)
  }

  private def known(index: PreparedDeltaFileIndex): Option[FileCount] = {
    val scan = index.preparedScan
    FileCount.of(scan.total).orElse {
      val isWhole = scan.partition != null && scan.allFilters.isEmpty
      if (isWhole) Some(FileCount.of(candidates(index))) else None
    }
  }

  /** The files that Delta's statistics kept. */
  private[usespark] def candidates(index: PreparedDeltaFileIndex): Seq[AddFile] = index match {
    case blocks: BlockFileIndex => blocks.candidates
    case _ => index.preparedScan.files
  }

  /** Spark's own metrics, which are zero until the scan lists its files. */
  private def listed(scan: FileSourceScanExec): Option[FileCount] = {
    def value(name: String): Long = scan.metrics.get(name).fold(0L)(_.value)
    if (value("numFiles") == 0) None else Some(FileCount(value("numFiles"), value("filesSize")))
  }
}
