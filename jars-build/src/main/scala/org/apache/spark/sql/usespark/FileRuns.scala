package org.apache.spark.sql.usespark

import scala.annotation.tailrec

import org.apache.hadoop.fs.Path
import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.{DataFrame, classic}
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
    val session = rows.sparkSession.asInstanceOf[classic.SparkSession]
    session.conf.set(SQLConf.FILES_MAX_PARTITION_BYTES.key, OneFilePerPartition)
    session.conf.set(SQLConf.FILES_OPEN_COST_IN_BYTES.key, OneFilePerPartition)
    session.conf.set(SQLConf.FILES_MAX_PARTITION_NUM.key, Int.MaxValue.toString)
    val scanned = rows.queryExecution.toRdd
    val files = scanOf(scanned).filePartitions.map(_.files.map(_.filePath.toPath).distinct)
    require(files.forall(_.length == 1), "a Spark partition of the scan has more than one file")
    val partitions = files.map(_.head).zipWithIndex.map { case (file, partition) => placeOf(file) -> partition }
    require(partitions.size == placeOf.size, s"${placeOf.size} files were asked for and ${partitions.size} are read")
    val of = partitions.groupMap(_._1._1) { case ((_, place), partition) => place -> partition }
    val inOrder = Array.tabulate(runs)(run => of(run).sorted.map(_._2).toArray)
    val rowsOfRuns = scanned.coalesce(runs, shuffle = false, Some(new InOrder(inOrder)))(null)
    session.internalCreateDataFrame(rowsOfRuns, rows.schema)
  }

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
