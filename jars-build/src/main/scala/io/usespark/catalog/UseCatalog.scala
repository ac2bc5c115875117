package io.usespark

import java.{util => ju}
import java.util.Locale

import scala.annotation.nowarn
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * `use_catalog.<catalog>.<db>.<table>[.<virtual table>]` looks into tables, and never changes one;
 * `use_catalog.system_lake_tables.<name>`, for short `use_catalog.system.<name>`, is about all tables.
 */
class UseCatalog extends TableCatalog with SupportsNamespaces {
  private var catalogName: String = _

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = catalogName = name
  override def name(): String = catalogName

  override def loadTable(identifier: Identifier): Table =
    if (UseCatalog.isSystem(identifier.namespace())) system(identifier) else ofTable(identifier)

  override def loadTable(identifier: Identifier, version: String): Table = {
    loadTable(identifier)
    throw UseException.timeTravel
  }

  override def loadTable(identifier: Identifier, timestamp: Long): Table = {
    loadTable(identifier)
    throw UseException.timeTravel
  }

  private def system(identifier: Identifier): Table = {
    val kind = identifier.name().toLowerCase(Locale.ROOT)
    val schema = Bridge.declarations().systemTable(kind).getOrElse(throw new NoSuchTableException(identifier))
    VirtualTable.ofSystem(s"$catalogName.${UseCatalog.System}.$kind", kind, schema)
  }

  private def ofTable(identifier: Identifier): Table = {
    val parts = identifier.namespace().toSeq
    val virtual = for {
      schema <- Bridge.declarations().virtualTable(identifier.name())
      if parts.length >= 2 && underlying(parts).isDefined
    } yield VirtualTable.of(Identifiers.quoted(parts), identifier.name().toLowerCase(Locale.ROOT), schema)
    virtual.orElse(underlying(parts :+ identifier.name()).map(new TableFacade(_))).getOrElse {
      throw new NoSuchTableException(identifier)
    }
  }

  private def catalogs = SparkSession.active.sessionState.catalogManager

  private def underlying(parts: Seq[String]): Option[Table] =
    if (parts.length < 2 || !catalogs.isCatalogRegistered(parts.head)) None
    else
      catalogs.catalog(parts.head) match {
        case catalog: TableCatalog if catalog ne this =>
          TablePaths.checked(Identifiers.quoted(parts)) {
            catalog.loadTable(Identifier.of(parts.slice(1, parts.length - 1).toArray, parts.last))
          }
        case _ => None
      }

  /** `SET TBLPROPERTIES` triggers one optimization and changes no property; what and whether is decided by Python. */
  override def alterTable(identifier: Identifier, changes: TableChange*): Table = {
    val settings = changes.collect { case set: TableChange.SetProperty => set.property() -> set.value() }
    if (UseCatalog.isSystem(identifier.namespace())) refuse("ALTER TABLE")
    if (changes.exists(_.isInstanceOf[TableChange.RemoveProperty])) refuse("ALTER TABLE … UNSET TBLPROPERTIES")
    if (settings.isEmpty || settings.size != changes.size) refuse("ALTER TABLE")
    val properties = new ObjectMapper().writeValueAsString(settings.toMap.asJava)
    val table = Identifiers.quoted(identifier.namespace().toSeq :+ identifier.name())
    Python.text(Operation.MANUAL_TRIGGER, Map("table" -> table, "properties" -> properties))
    loadTable(identifier)
  }

  override def listTables(namespace: Array[String]): Array[Identifier] =
    if (namespace.isEmpty) Array.empty
    else if (!UseCatalog.isSystem(namespace)) refuse("SHOW TABLES")
    else Bridge.declarations().systemTables.keys.toArray.sorted.map(Identifier.of(namespace, _))
  override def createTable(i: Identifier, c: Array[Column], p: Array[Transform], o: ju.Map[String, String]): Table =
    refuse("CREATE TABLE")
  override def dropTable(identifier: Identifier): Boolean = refuse("DROP TABLE")
  override def renameTable(from: Identifier, to: Identifier): Unit = refuse("ALTER TABLE … RENAME")

  override def listNamespaces(): Array[Array[String]] = Array(Array(UseCatalog.System))
  override def listNamespaces(namespace: Array[String]): Array[Array[String]] =
    if (namespace.isEmpty || UseCatalog.isSystem(namespace)) Array.empty else refuse("SHOW NAMESPACES")
  override def loadNamespaceMetadata(namespace: Array[String]): ju.Map[String, String] =
    if (UseCatalog.isSystem(namespace) || namespace.headOption.forall(catalogs.isCatalogRegistered))
      ju.Collections.emptyMap()
    else throw new NoSuchNamespaceException(namespace)
  override def createNamespace(namespace: Array[String], properties: ju.Map[String, String]): Unit =
    refuse("CREATE NAMESPACE")
  override def alterNamespace(namespace: Array[String], changes: NamespaceChange*): Unit = refuse("ALTER NAMESPACE")
  override def dropNamespace(namespace: Array[String], cascade: Boolean): Boolean = refuse("DROP NAMESPACE")

  private def refuse(statement: String): Nothing = throw UseCatalog.refused(statement)
}

object UseCatalog {
  private val System = "system_lake_tables"
  private val SystemNames = Set(System, "system")

  def isSystem(namespace: Array[String]): Boolean =
    namespace.length == 1 && SystemNames(namespace.head.toLowerCase(Locale.ROOT))

  /** The refusal of a statement that is for tables under their own names. */
  def refused(statement: String): UseException = UseException.notSupported(
    s"$statement is not available through use_catalog, which is for looking at tables: use the table's own name. " +
      "Available are DESCRIBE, SHOW TBLPROPERTIES, virtual tables, and ALTER TABLE … SET TBLPROPERTIES " +
      "('use.optimization.type' = …), which runs one optimization."
  )
}

/** A table as `use_catalog` shows it: its schema and properties, to be described but not read. */
final class TableFacade(table: Table) extends Table {
  override def name(): String = table.name()
  override def columns(): Array[Column] = table.columns()
  @nowarn("cat=deprecation") override def schema(): StructType = table.schema()
  override def properties(): ju.Map[String, String] = table.properties()
  override def capabilities(): ju.Set[TableCapability] = ju.Collections.emptySet()
}
