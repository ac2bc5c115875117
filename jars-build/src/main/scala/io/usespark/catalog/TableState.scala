package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.delta.actions.{AddFile, Metadata}
import org.apache.spark.sql.delta.skipping.clustering.{ClusteredTableUtils, ClusteringColumnInfo}
import org.apache.spark.sql.delta.usespark.{FileStatistics, NumberedRows}

/** One version of a table, for Python to look at. */
final class TableState(snapshot: Snapshot, metadata: Metadata, table: Option[CatalogTable]) {
  def this(snapshot: Snapshot, table: Option[CatalogTable]) = this(snapshot, snapshot.metadata, table)

  /**
   * Version, time of its commit file, id, configuration, schema, partition columns and retention of deleted files, and
   * the properties that it has from its database and from `session`, as JSON.
   */
  def facts(session: SparkSession): String = {
    val mapper = new ObjectMapper()
    val json = mapper.createObjectNode()
    json.put("retention_ms", DeltaLog.tombstoneRetentionMillis(metadata))
    json.put("version", snapshot.version).put("table_id", metadata.id).put("schema", metadata.schemaString)
    json.put("committed_at", Option(snapshot.logSegment).fold(0L)(_.lastCommitFileModificationTimestamp))
    json.set[JsonNode]("configuration", mapper.valueToTree(metadata.configuration.asJava))
    json.set[JsonNode]("partition_columns", mapper.valueToTree(metadata.partitionColumns.asJava))
    json.set[JsonNode](
      "inherited",
      InheritedProperties.of(session, table.flatMap(t => InheritedProperties.databaseOf(t.identifier)))
    )
    json.toString
  }

  /** Logical names of the columns of CLUSTER BY; none without it. */
  def clusteringColumns: Array[String] =
    if (!ClusteredTableUtils.isSupported(snapshot.protocol)) Array.empty
    else ClusteringColumnInfo.extractLogicalNames(snapshot).toArray

  /** Bytes of all live files: from the version's checksum, or else added up. */
  def sizeInBytes: Long = snapshot.checksumOpt.fold(snapshot.sizeInBytes)(_.tableSizeBytes)

  /**
   * The size of the list of files, without a Spark job: the number of files as the version's checksum has
   * it, -1 where it has none, the bytes of the checkpoint, and the bytes of the commits after it.
   */
  def extent: Array[Long] = {
    val segment = snapshot.logSegment
    val checkpoint = snapshot.checkpointProvider.effectiveCheckpointSizeInBytes()
    Array(snapshot.checksumOpt.fold(-1L)(_.numFiles), checkpoint, segment.deltas.map(_.getLen).sum)
  }

  /** The live files as lines of a log, from the version's checksum; null where it does not list them. */
  def listed: String = snapshot.checksumOpt.flatMap(_.allFiles).fold(null: String)(_.map(_.json).mkString("\n"))

  /** The rows stored in these files (AddFile rows), those included that deletion vectors hide. */
  def rowsStored(files: DataFrame): DataFrame = {
    import org.apache.spark.sql.delta.implicits._
    val stored = files.as[AddFile].collect().toSeq.map(_.copy(deletionVector = null))
    snapshot.deltaLog.createDataFrame(snapshot, stored)
  }

  /** The live rows of these files (AddFile rows); the scan's metadata has the position of each row in its file. */
  def numberedRows(files: DataFrame): DataFrame = {
    import org.apache.spark.sql.delta.implicits._
    NumberedRows.of(snapshot, files.as[AddFile].collect().toSeq)
  }

  /** Collects statistics of files of the version, with the settings of `session`. */
  def statistics(session: SparkSession): FileStatistics = new FileStatistics(session, snapshot)

  /** The live files: the columns of Delta's AddFile, computed with the settings of `session`. */
  def files(session: SparkSession): DataFrame = ActiveSession.within(session)(snapshot.allFiles.toDF())

  /** The actions that make the version: `add` of live files, `remove` of files that were removed recently. */
  def actions(session: SparkSession): DataFrame = ActiveSession.within(session)(snapshot.stateDF)
}
