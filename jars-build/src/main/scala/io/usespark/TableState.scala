package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.delta.Snapshot

/** One version of a table, for Python to look at. */
final class TableState(snapshot: Snapshot) {

  /** Version, id, configuration, schema and partition columns, as JSON. */
  def facts: String = {
    val mapper = new ObjectMapper()
    val metadata = snapshot.metadata
    val json = mapper.createObjectNode()
    json.put("version", snapshot.version).put("table_id", metadata.id).put("schema", metadata.schemaString)
    json.set[com.fasterxml.jackson.databind.JsonNode]("configuration", mapper.valueToTree(metadata.configuration.asJava))
    json.set[com.fasterxml.jackson.databind.JsonNode]("partition_columns", mapper.valueToTree(metadata.partitionColumns.asJava))
    json.toString
  }

  /** The live files: the columns of Delta's AddFile. */
  def files: DataFrame = snapshot.allFiles.toDF()
}
