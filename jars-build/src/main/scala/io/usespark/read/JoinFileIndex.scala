package io.usespark

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex

/**
 * What the keys of one join did to the files of a scan.
 *
 * @param side the tables of the other side.
 * @param columns the columns of the scan that are compared with its keys.
 * @param keys number of different keys, of the column that has most; None if they were not looked at.
 * @param reason code of the reason why no file was skipped; None if files were.
 * @param files left after this join.
 * @param job what a job read for the keys; None if none was started for this scan.
 */
final case class JoinOutcome(
    side: String,
    columns: Seq[String],
    keys: Option[Long],
    reason: Option[String],
    files: FileCount,
    job: Option[FileCount] = None
)

object JoinOutcome {

  /** On a scan whose joins were considered; Spark copies tags with the nodes. */
  val Tag: TreeNodeTag[Seq[JoinOutcome]] = TreeNodeTag[Seq[JoinOutcome]]("use.join.outcomes")
}

/**
 * The file index of a scan, less the files without any row that matches the other side of the joins above it.
 *
 * @param filters the conditions of the joins that were added to the filters of the scan.
 */
final class JoinFileIndex(
    val base: PreparedDeltaFileIndex,
    val filters: Seq[Expression],
    kept: Seq[AddFile]
) extends PreparedDeltaFileIndex(
      base.spark,
      base.deltaLog,
      base.path,
      base.catalogTableOpt,
      BlockFileIndex.withFiles(base.preparedScan, kept),
      base.versionScanned
    ) {
  val count: FileCount = FileCount.of(kept)

  /** The filters of the scan selected the files from which these were chosen; more filters select no more files. */
  override def matchingFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[AddFile] = kept

  override def toString: String = s"JoinFileIndex(version=${preparedScan.version}, path=$path)"
}
