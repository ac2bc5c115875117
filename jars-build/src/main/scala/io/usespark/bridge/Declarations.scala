package io.usespark

import java.util.Locale

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.types.{DataType, StructType}

final case class ParameterDeclaration(name: String, dataType: DataType, default: Option[String], doc: String)

final case class ProcedureDeclaration(name: String, doc: String, parameters: Seq[ParameterDeclaration])

final case class SettingDeclaration(name: String, default: String, doc: String)

/** The declarations that Python sent at attach; the shim itself has none of these names. */
final class Declarations(
    val procedures: Map[String, ProcedureDeclaration],
    val virtualTables: Map[String, StructType],
    val systemTables: Map[String, StructType],
    foreignProperties: Seq[String],
    val settings: Seq[SettingDeclaration]
) {
  private val (foreignPrefixes, foreignNames) = foreignProperties.partition(_.endsWith("."))

  def procedure(name: String): Option[ProcedureDeclaration] = procedures.get(name.toLowerCase(Locale.ROOT))

  /** The schema of the virtual table `name` that every managed table has, such as `optimizations`. */
  def virtualTable(name: String): Option[StructType] = virtualTables.get(name.toLowerCase(Locale.ROOT))

  /** The schema of the table about all tables `name`, such as `metastore_summary`. */
  def systemTable(name: String): Option[StructType] = systemTables.get(name.toLowerCase(Locale.ROOT))

  /** Whether Python has advice on a table property, because another system has one of this name. */
  def isForeignProperty(key: String): Boolean = {
    val lower = key.toLowerCase(Locale.ROOT)
    foreignNames.contains(lower) || foreignPrefixes.exists(lower.startsWith)
  }
}

object Declarations {
  val empty: Declarations = new Declarations(Map.empty, Map.empty, Map.empty, Nil, Nil)

  def parse(json: String): Declarations = {
    val root = new ObjectMapper().readTree(json)
    val procedures = root.get("procedures").elements().asScala.map(procedure).map(p => p.name -> p).toMap
    val foreign = root.get("foreign_properties").elements().asScala.map(_.asText()).toSeq
    val settings = root.get("settings").elements().asScala.map(setting).toSeq
    val (virtualTables, systemTables) = (schemas(root.get("virtual_tables")), schemas(root.get("system_tables")))
    new Declarations(procedures, virtualTables, systemTables, foreign, settings)
  }

  private def procedure(node: JsonNode): ProcedureDeclaration = ProcedureDeclaration(
    node.get("name").asText(),
    node.get("doc").asText(),
    node.get("parameters").elements().asScala.map(parameter).toSeq
  )

  private def parameter(node: JsonNode): ParameterDeclaration = ParameterDeclaration(
    node.get("name").asText(),
    DataType.fromDDL(node.get("type").asText()),
    Option(node.get("default")).filterNot(_.isNull).map(_.asText()),
    node.get("doc").asText()
  )

  private def setting(node: JsonNode): SettingDeclaration =
    SettingDeclaration(node.get("name").asText(), node.get("default").asText(), node.get("doc").asText())

  private def schemas(node: JsonNode): Map[String, StructType] =
    node.properties().asScala.map(e => e.getKey -> StructType.fromDDL(e.getValue.asText())).toMap
}
