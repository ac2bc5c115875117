package io.usespark

import java.util.Locale

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.types.StructType

/** Lets Python check the changes that a statement makes to a table's properties and columns. */
object MetadataCheck {

  /** The metadata that the statement sets, with changed properties if they name a renamed column. */
  def altered(before: Metadata, after: Metadata, database: Option[String]): Metadata = {
    val entries = ask(before, after, database)
    val (set, removed) = entries.partition(_._2.isDefined)
    if (entries.isEmpty) after
    else after.copy(configuration = after.configuration -- removed.keys ++ set.map { case (k, v) => k -> v.get })
  }

  /** Checks a table that a statement makes; returns the properties that the statement must set in addition. */
  def created(
      properties: Map[String, String],
      schema: StructType,
      partitionColumns: Seq[String],
      database: Option[String]
  ): Map[String, String] = {
    // As Delta stores it.
    val stored = CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema)
    additions(
      Metadata(),
      Metadata(configuration = properties, schemaString = stored.json, partitionColumns = partitionColumns),
      database
    )
  }

  /** The same for a table that a statement makes after another one, with these properties of its own. */
  def copied(source: Metadata, properties: Map[String, String]): Map[String, String] =
    additions(source, source.copy(configuration = source.configuration ++ properties), None)

  private def additions(before: Metadata, after: Metadata, database: Option[String]): Map[String, String] =
    ask(before, after, database).collect { case (key, Some(value)) => key -> value }

  /** Properties to be set in addition; None for one to be removed. */
  private def ask(before: Metadata, after: Metadata, database: Option[String]): Map[String, Option[String]] =
    if (!Python.attached || !concernsUs(before, after)) Map.empty
    else {
      val inherited = InheritedProperties.of(SparkSession.active, database).toString
      val answer = Python.text(
        Operation.CHECK_METADATA,
        Map("before" -> facts(before), "after" -> facts(after), "inherited" -> inherited)
      )
      val entries = new ObjectMapper().readTree(answer.getOrElse("{}"))
      entries.properties().asScala.map(e => e.getKey -> Option(e.getValue).filterNot(_.isNull).map(_.asText())).toMap
    }

  private def concernsUs(before: Metadata, after: Metadata): Boolean =
    (before.configuration != after.configuration || before.schemaString != after.schemaString) &&
      (areOurs(before.configuration.keys ++ after.configuration.keys) || setsForeign(before, after))

  /** Whether the statement sets a property that another system has; Python then logs what to set instead. */
  private def setsForeign(before: Metadata, after: Metadata): Boolean = after.configuration.exists {
    case (key, value) =>
      !before.configuration.get(key).contains(value) && Bridge.declarations().isForeignProperty(key)
  }

  /** Whether a property may belong to USE. */
  def areOurs(keys: Iterable[String]): Boolean = keys.exists { key =>
    val lower = key.toLowerCase(Locale.ROOT)
    lower.startsWith("use.") || lower.startsWith("qbeast.")
  }

  private def facts(metadata: Metadata): String = {
    val mapper = new ObjectMapper()
    val json = mapper.createObjectNode().put("schema", metadata.schemaString)
    json.set[JsonNode]("configuration", mapper.valueToTree(metadata.configuration.asJava))
    json.set[JsonNode]("partition_columns", mapper.valueToTree(metadata.partitionColumns.asJava))
    json.toString
  }
}
