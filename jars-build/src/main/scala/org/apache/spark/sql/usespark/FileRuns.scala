package org.apache.spark.sql.usespark

import scala.annotation.tailrec

import org.apache.hadoop.fs.Path
import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.{DataFrame, classic}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.FileScanRDD
import org.apache.spark.sql.internal.SQLConf

/**
 * Rows of files in runs: each Spark partition has the rows of one run of files, in the order of the files in the run and
 * of the rows in each file. Nothing is shuffled or sorted.
 */
object FileRuns {
  // Larger than any file; a scan adds it up over all files, and the sum has to fit a long.
  private val OneFilePerPartition = (1L << 40).toString

  /**
   * @param rows scan of the files, in a session of its own, whose plan was not computed yet
   * @param placeOf run of each file, and its place there
   */
  def read(rows: DataFrame, runs: Int, placeOf: Map[Path, (Int, Int)]): DataFrame = {
    val (scanned, files) = scan(rows, OneFilePerPartition)
    val partitions = files.zipWithIndex.map { case (file, partition) => placeOf(file) -> partition }
    require(partitions.size == placeOf.size, s"${placeOf.size} files were asked for and ${partitions.size} are read")
    val of = partitions.groupMap(_._1._1) { case ((_, place), partition) => place -> partition }
    val inOrder = Array.tabulate(runs)(run => of(run).sorted.map(_._2).toArray)
    ofRdd(rows, scanned.coalesce(runs, shuffle = false, Some(new InOrder(inOrder)))(null))
  }

  /**
   * The same rows, each Spark partition those of one file, or of a part of a file with more than `mostBytes`; with the
   * file of each partition. Files that the filters of the rows leave out are not among them.
   *
   * @param rows what a scan gives row by row, in a session of its own, whose plan was not computed yet
   */
  def apart(rows: DataFrame, mostBytes: Long): (DataFrame, Seq[Path]) = {
    val (scanned, files) = scan(rows, mostBytes.toString)
    (ofRdd(rows, scanned), files)
  }

  /** The rows as they are computed, no Spark partition from two files, and the file of each partition. */
  private def scan(rows: DataFrame, mostBytes: String): (RDD[InternalRow], Seq[Path]) = {
    val session = rows.sparkSession
    session.conf.set(SQLConf.FILES_MAX_PARTITION_BYTES.key, mostBytes)
    session.conf.set(SQLConf.FILES_OPEN_COST_IN_BYTES.key, OneFilePerPartition)
    session.conf.set(SQLConf.FILES_MAX_PARTITION_NUM.key, Int.MaxValue.toString)
    val scanned = rows.queryExecution.toRdd
    val files = scanOf(scanned).filePartitions.map(_.files.map(_.filePath.toPath).distinct)
    require(
      files.forall(_.length == 1),
      s"Spark partitions of the scan have ${files.map(_.length).distinct.mkString(", ")} files"
    )
    (scanned, files.map(_.head))
  }

  private def ofRdd(like: DataFrame, rows: RDD[InternalRow]): DataFrame =
    like.sparkSession.asInstanceOf[classic.SparkSession].internalCreateDataFrame(rows, like.schema)

  @tailrec
  private def scanOf(rdd: RDD[_]): FileScanRDD = rdd match {
    case scan: FileScanRDD => scan
    case other if other.dependencies.size == 1 => scanOf(other.dependencies.head.rdd)
    case other => throw new IllegalStateException(s"not the scan of files: $other")
  }
}

/** Joins given partitions in a given order. */
final private class InOrder(partitions: Array[Array[Int]]) extends PartitionCoalescer with Serializable {
  override def coalesce(maxPartitions: Int, parent: RDD[_]): Array[PartitionGroup] =
    partitions.map { members =>
      val group = new PartitionGroup()
      members.foreach(member => group.partitions += parent.partitions(member))
      group
    }
}
