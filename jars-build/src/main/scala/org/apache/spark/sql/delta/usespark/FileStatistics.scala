package org.apache.spark.sql.delta.usespark

import java.net.URI
import java.time.LocalDate

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.logging.log4j.Level
import org.apache.logging.log4j.core.config.Configurator
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.LogicalTypeAnnotation.{DateLogicalTypeAnnotation, IntLogicalTypeAnnotation}
import org.apache.spark.sql.{DataFrame, SparkSession, classic}
import org.apache.spark.sql.delta.{DeltaLog, IdMapping, Snapshot}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.implicits._
import org.apache.spark.sql.delta.stats.{DeltaStatistics, StatsCollectionUtils}
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.apache.spark.sql.functions.{col, to_json}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * Statistics of files of a version, as Delta's own code collects them: from the footers of Parquet, or from the rows.
 *
 * Both count the rows that a file stores. The bounds of a file with a deletion vector are marked as wide.
 */
final class FileStatistics(session: SparkSession, snapshot: Snapshot) {
  private val log: DeltaLog = snapshot.deltaLog

  /** The schema of the column `stats`, in JSON. */
  def schema: String = snapshot.statsSchema.json

  /**
   * AddFile rows with the statistics of their footers, which lack what Delta cannot take from a footer. Files of which it
   * would take wrong ones have the number of their rows only.
   */
  def fromFooters(files: DataFrame): DataFrame = session.withActive {
    // It warns about each file whose footer lacks something.
    Configurator.setLevel(StatsCollectionUtils.getClass.getName.stripSuffix("$"), Level.ERROR)
    val conf = session.sparkContext.broadcast(new SerializableConfiguration(log.newDeltaHadoopConf()))
    val root = log.dataPath.toString
    val counted = FileStatistics.countedColumns(snapshot)
    Footers
      .of(session.asInstanceOf[classic.SparkSession], snapshot, files.as[AddFile])
      .map { file =>
        val path = DeltaFileOperations.absolutePath(root, file.path)
        if (FileStatistics.isUnsure(path, conf.value.value, counted)) FileStatistics.withRowsOnly(file)
        else file.copy(stats = FileStatistics.withoutReplaced(file.stats))
      }
      .toDF()
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
        val stats =
          collected.get(path).fold(s"""{"${DeltaStatistics.NUM_RECORDS}":0}""")(FileStatistics.withoutReplaced)
        file.copy(stats = if (file.deletionVector == null) stats else FileStatistics.withWideBounds(stats))
      })
      .toDF()
  }
}

private object FileStatistics {
  private val Replacement = "\uFFFD"

  private def node(stats: String): ObjectNode = new ObjectMapper().readTree(stats).asInstanceOf[ObjectNode]

  private def withWideBounds(stats: String): String = node(stats).put(DeltaStatistics.TIGHT_BOUNDS, false).toString

  private def withRowsOnly(file: AddFile): AddFile =
    file.copy(stats = node(file.stats).retain(DeltaStatistics.NUM_RECORDS).toString)

  /** Without the bounds that have U+FFFD: it may stand for bytes that are not UTF-8, which have another order. */
  private def withoutReplaced(stats: String): String =
    if (stats == null || !stats.contains(Replacement)) stats
    else {
      val json = node(stats)
      Seq(DeltaStatistics.MIN, DeltaStatistics.MAX).map(json.path).foreach(removeReplaced)
      json.toString
    }

  private def removeReplaced(bounds: JsonNode): Unit = {
    bounds.elements().asScala.foreach(removeReplaced)
    val names = bounds.fieldNames().asScala.toSeq.filter(bounds.get(_).asText().contains(Replacement))
    bounds match {
      case fields: ObjectNode => fields.remove(names.asJava)
      case _ => ()
    }
  }

  /** The columns that have statistics, by their names in files; None where these do not tell, as columns have ids. */
  private def countedColumns(snapshot: Snapshot): Option[StructType] =
    Option.when(snapshot.metadata.columnMappingMode != IdMapping) {
      snapshot.statsSchema.fields
        .find(_.name == DeltaStatistics.NULL_COUNT)
        .fold(new StructType())(_.dataType.asInstanceOf[StructType])
    }

  /** Whether a path of a Parquet file belongs to one of the columns: arrays and maps have longer paths there. */
  @tailrec private def belongsTo(columns: StructType, path: Seq[String]): Boolean =
    columns.find(_.name.equalsIgnoreCase(path.head)).map(_.dataType) match {
      case Some(fields: StructType) => path.size > 1 && belongsTo(fields, path.tail)
      case column => column.isDefined
    }

  /** Whether Delta would take wrong statistics of the counted columns from the footer of a Parquet file. */
  private def isUnsure(path: Path, conf: Configuration, counted: Option[StructType]): Boolean = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf))
    try {
      val schema = reader.getFooter.getFileMetaData.getSchema
      val chunks = reader.getFooter.getBlocks.asScala.flatMap(_.getColumns.asScala).toSeq.filter { chunk =>
        counted.forall(belongsTo(_, chunk.getPath.toArray.toSeq))
      }
      // It takes empty arrays and maps, and nulls inside of them, for nulls of the column.
      def hasNullElements(chunk: ColumnChunkMetaData): Boolean =
        schema.getMaxRepetitionLevel(chunk.getPath.toArray: _*) > 0 && chunk.getStatistics.getNumNulls != 0
      chunks.exists(chunk => isUnsigned(chunk) || hasFarDates(chunk) || hasNullElements(chunk)) ||
      chunks.groupBy(_.getPath).values.exists(hasGaps)
    } finally reader.close()
  }

  /** It takes unsigned numbers for signed ones. */
  private def isUnsigned(chunk: ColumnChunkMetaData): Boolean =
    chunk.getPrimitiveType.getLogicalTypeAnnotation match {
      case number: IntLogicalTypeAnnotation => !number.isSigned
      case _ => false
    }

  /** It writes dates with four digits of their year and without the era. */
  private def hasFarDates(chunk: ColumnChunkMetaData): Boolean =
    chunk.getPrimitiveType.getLogicalTypeAnnotation.isInstanceOf[DateLogicalTypeAnnotation] &&
      chunk.getStatistics.hasNonNullValue &&
      Seq(chunk.getStatistics.genericGetMin, chunk.getStatistics.genericGetMax).exists { day =>
        val year = LocalDate.ofEpochDay(day.asInstanceOf[Number].longValue).getYear
        year < 1 || year > 9999
      }

  /** It leaves out row groups without bounds, as if their values were null. Writers leave out bounds that are long. */
  private def hasGaps(chunksOfColumn: Seq[ColumnChunkMetaData]): Boolean =
    chunksOfColumn.exists(_.getStatistics.hasNonNullValue) && chunksOfColumn.exists { chunk =>
      !chunk.getStatistics.hasNonNullValue && chunk.getStatistics.getNumNulls < chunk.getValueCount
    }
}
