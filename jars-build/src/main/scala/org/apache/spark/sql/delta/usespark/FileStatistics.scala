package org.apache.spark.sql.delta.usespark

import java.net.URI

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.logging.log4j.Level
import org.apache.logging.log4j.core.config.Configurator
import org.apache.spark.sql.{DataFrame, SparkSession, classic}
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.implicits._
import org.apache.spark.sql.delta.stats.{DeltaStatistics, StatsCollectionUtils}
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.apache.spark.sql.functions.{col, to_json}

/**
 * Statistics of files of a version, as Delta's own code collects them: from the footers of Parquet, or from the rows.
 *
 * Both count the rows that a file stores. The bounds of a file with a deletion vector are marked as wide.
 */
final class FileStatistics(session: SparkSession, snapshot: Snapshot) {
  private val log: DeltaLog = snapshot.deltaLog

  /** The schema of the column `stats`, in JSON. */
  def schema: String = snapshot.statsSchema.json

  /** AddFile rows with the statistics of their footers, which lack what Delta cannot take from a footer. */
  def fromFooters(files: DataFrame): DataFrame = session.withActive {
    // It warns about each file whose footer lacks something.
    Configurator.setLevel(StatsCollectionUtils.getClass.getName.stripSuffix("$"), Level.ERROR)
    Footers.of(session.asInstanceOf[classic.SparkSession], snapshot, files.as[AddFile]).toDF()
  }

  /** AddFile rows with the statistics of their rows. The driver holds the list of the files. */
  def fromRows(files: DataFrame): DataFrame = session.withActive {
    val root = log.dataPath.getFileSystem(log.newDeltaHadoopConf()).makeQualified(log.dataPath)
    val listed = files.as[AddFile].collect().toSeq
    val fileAt = listed.map { file =>
      DeltaFileOperations.absolutePath(root.toString, file.path).makeQualified(root.toUri, root).toString -> file
    }.toMap
    val rows = log.createDataFrame(snapshot, listed.map(_.copy(deletionVector = null)))
    val collected = rows
      .groupBy(col("_metadata.file_path").as("path"))
      .agg(to_json(snapshot.statsCollector))
      .collect()
      .map(row => new Path(new URI(row.getString(0))).makeQualified(root.toUri, root).toString -> row.getString(1))
      .toMap
    // A file without rows has none in the result.
    session
      .createDataset(fileAt.toSeq.map { case (path, file) =>
        val stats = collected.getOrElse(path, s"""{"${DeltaStatistics.NUM_RECORDS}":0}""")
        file.copy(stats = if (file.deletionVector == null) stats else withWideBounds(stats))
      })
      .toDF()
  }

  private def withWideBounds(stats: String): String = {
    val node = new ObjectMapper().readTree(stats).asInstanceOf[ObjectNode]
    node.put(DeltaStatistics.TIGHT_BOUNDS, false).toString
  }
}
