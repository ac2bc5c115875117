package io.usespark

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog

/**
 * The properties of USE that tables have from their database, and from the session; Python merges them.
 *
 * Every query and every look at a table asks, so what the metastore says of a database is kept for some seconds.
 */
object InheritedProperties extends Logging {
  private val OfSession = "spark.qbeast."
  private val OfUse = "use."
  private val KeptNanos = 10L * 1000 * 1000 * 1000
  private val kept = new ConcurrentHashMap[(ExternalCatalog, String), Known]()

  final private case class Known(properties: Map[String, String], since: Long)

  /** An object of `session` and `database`, each with values by property. */
  def of(session: SparkSession, database: Option[String]): ObjectNode = {
    val mapper = new ObjectMapper()
    val node = mapper.createObjectNode()
    node.set[JsonNode]("session", mapper.valueToTree(ofSession(session).asJava))
    node.set[JsonNode]("database", mapper.valueToTree(ofDatabase(session, database).asJava))
    node
  }

  /** The same for some databases, as JSON: the values of the session, and those of each database. */
  def ofDatabases(session: SparkSession, databases: java.util.List[String]): String = {
    val mapper = new ObjectMapper()
    val node = mapper.createObjectNode()
    node.set[JsonNode]("session", mapper.valueToTree(ofSession(session).asJava))
    val byName = node.putObject("databases")
    databases.asScala.foreach(name =>
      byName.set[JsonNode](name, mapper.valueToTree(ofDatabase(session, Some(name)).asJava))
    )
    node.toString
  }

  /** The value of a property that a table of a database does not set itself. */
  def value(session: SparkSession, database: Option[String], property: String): Option[String] =
    ofDatabase(session, database).get(property).orElse(ofSession(session).get(property))

  /** The database of a table, unless it is one of another catalog, of whose properties the metastore knows nothing. */
  def databaseOf(table: TableIdentifier): Option[String] =
    table.database.filter(_ => table.catalog.forall(_.equalsIgnoreCase("spark_catalog")))

  /** Those that belong to USE. */
  def ours(properties: Map[String, String]): Map[String, String] = properties.filter(_._1.startsWith(OfUse))

  /** Has all databases looked up again. */
  def forget(): Unit = kept.clear()

  private def ofSession(session: SparkSession): Map[String, String] =
    session.asInstanceOf[classic.SparkSession].sessionState.conf.getAllConfs.collect {
      case (key, value) if key.startsWith(OfSession + OfUse) => key.stripPrefix(OfSession) -> value
    }

  private def ofDatabase(session: SparkSession, database: Option[String]): Map[String, String] =
    database.fold(Map.empty[String, String]) { name =>
      val catalog = session.asInstanceOf[classic.SparkSession].sessionState.catalog.externalCatalog
      val now = System.nanoTime()
      kept
        .compute(
          (catalog, name),
          (_, known) => if (known != null && now - known.since < KeptNanos) known else read(catalog, name, known, now)
        )
        .properties
    }

  /** A database that cannot be read has the properties that it had before: its tables go on. */
  private def read(catalog: ExternalCatalog, database: String, before: Known, now: Long): Known =
    try Known(ours(catalog.getDatabase(database).properties), now)
    catch {
      case NonFatal(error) =>
        logWarning(s"The properties of database $database cannot be read: $error")
        Known(if (before == null) Map.empty else before.properties, now)
    }
}
