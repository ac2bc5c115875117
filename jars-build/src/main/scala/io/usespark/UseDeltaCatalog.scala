package io.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, CatalogUtils}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.delta.{DeltaLog, DeltaOptions}
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.catalog.{DeltaCatalog, DeltaTableV2}
import org.apache.spark.sql.delta.commands.{CreateDeltaTableCommand, TableCreationModes, WriteIntoDelta}
import org.apache.spark.sql.delta.usespark.{IndexedCreation, IndexedWrite}
import org.apache.spark.sql.delta.util.{Utils => DeltaUtils}
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.types.StructType

/**
 * `spark_catalog`: Delta's catalog, which also finds `<table>.<virtual table>` by name and by path, and makes tables
 * `USING qbeast`, which are Delta tables that index what is written to them.
 */
class UseDeltaCatalog extends DeltaCatalog {
  override def loadTable(identifier: Identifier): Table =
    virtualTable(identifier).getOrElse(super.loadTable(identifier))

  /** Loads a table to write to it. */
  override def loadTable(identifier: Identifier, privileges: ju.Set[TableWritePrivilege]): Table = {
    val formatIsQbeast = NamedFormat.taken()
    super.loadTable(identifier, privileges) match {
      case table: UseDeltaTable if formatIsQbeast => new UseDeltaTable(table, true)
      case table => table
    }
  }

  override def tableExists(identifier: Identifier): Boolean =
    virtualTable(identifier).isDefined || super.tableExists(identifier)

  override def loadTable(identifier: Identifier, version: String): Table = {
    if (virtualTable(identifier).isDefined) throw UseException.timeTravel
    super.loadTable(identifier, version)
  }

  override def loadTable(identifier: Identifier, timestamp: Long): Table = {
    if (virtualTable(identifier).isDefined) throw UseException.timeTravel
    super.loadTable(identifier, timestamp)
  }

  private def virtualTable(identifier: Identifier): Option[Table] = {
    val parts = identifier.namespace()
    Bridge.declarations().virtualTable(identifier.name()).flatMap { schema: StructType =>
      // `t.optimizations` is table t of the current database, unless a database t has a table of that name.
      if (parts.isEmpty || (parts.length == 1 && super.tableExists(identifier))) None
      else {
        val owner = if (parts.length == 1) SparkSession.active.catalog.currentDatabase +: parts else parts
        try
          super.loadTable(Identifier.of(owner.init, owner.last)) match {
            case delta: DeltaTableV2 =>
              val table = Identifiers.quoted(name() +: owner.toSeq)
              TablePaths.check(SparkSession.active, delta, table)
              if (delta.tableExists) Some(VirtualTable.of(table, identifier.name().toLowerCase, schema)) else None
            case _ => None
          }
        catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }
      }
    }
  }

  // ------------------------------------------------------------------------------- what the optimization service hears

  /** Delta would change the newest version of a table whose path names an older one. */
  override def alterTable(identifier: Identifier, changes: TableChange*): Table = {
    if (isPathIdentifier(identifier))
      super.loadTable(identifier) match {
        case delta: DeltaTableV2 => TablePaths.check(SparkSession.active, delta, fullName(identifier))
        case _ => ()
      }
    notifying(super.alterTable(identifier, changes: _*))
  }

  override def dropTable(identifier: Identifier): Boolean = notifyingIfDropped(identifier, super.dropTable(identifier))

  override def purgeTable(identifier: Identifier): Boolean =
    notifyingIfDropped(identifier, super.purgeTable(identifier))

  override def renameTable(from: Identifier, to: Identifier): Unit = {
    super.renameTable(from, to)
    CatalogChanges.renamed(name(), fullName(from), loadTable(to))
  }

  private def notifying(make: => Table): Table = {
    val made = make
    CatalogChanges.made(name(), made)
    made
  }

  private def notifyingWhenCommitted(identifier: Identifier)(staged: StagedTable): StagedTable =
    NotifyingStagedTable.of(staged)(CatalogChanges.made(name(), loadTable(identifier)))

  private def notifyingIfDropped(identifier: Identifier, dropped: Boolean): Boolean = {
    if (dropped) CatalogChanges.dropped(fullName(identifier))
    dropped
  }

  /** The name of a table as the metastore has it, in whatever case it was written. */
  private def fullName(identifier: Identifier): String = {
    val parts = identifier.namespace().toSeq
    val known =
      if (parts.length != 1 || isPathIdentifier(identifier)) parts :+ identifier.name()
      else {
        val table = spark.sessionState.catalog.qualifyIdentifier(TableIdentifier(identifier.name(), parts.headOption))
        table.database.toSeq :+ table.table
      }
    Identifiers.quoted(name() +: known)
  }

  // ------------------------------------------------------------------------------------------- tables USING qbeast

  override def loadCatalogTable(identifier: Identifier, table: CatalogTable): Table =
    writable(super.loadCatalogTable(identifier, table))

  override def loadPathTable(identifier: Identifier): Table = writable(super.loadPathTable(identifier))

  /** `` qbeast.`/path` `` is `` delta.`/path` ``. */
  override protected def isPathIdentifier(identifier: Identifier): Boolean =
    super.isPathIdentifier(identifier) || (identifier.namespace().length == 1 &&
      IndexedTables.isQbeast(identifier.namespace().head) &&
      super.isPathIdentifier(Identifier.of(Array("delta"), identifier.name())))

  override def createTable(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): Table =
    notifying {
      check(schema, partitions, properties)
      if (!isQbeast(properties)) super.createTable(identifier, schema, partitions, properties)
      else super.createTable(identifier, schema, partitions, plain(identifier, schema, partitions, properties))
    }

  override def stageCreate(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): StagedTable =
    notifyingWhenCommitted(identifier) {
      check(schema, partitions, properties)
      if (!isQbeast(properties)) super.stageCreate(identifier, schema, partitions, properties)
      else
        staged(identifier, schema, partitions, properties, TableCreationModes.Create) {
          super.stageCreate(identifier, schema, partitions, _)
        }
    }

  override def stageReplace(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): StagedTable =
    notifyingWhenCommitted(identifier) {
      check(schema, partitions, properties)
      if (!isQbeast(properties)) super.stageReplace(identifier, schema, partitions, properties)
      else
        staged(identifier, schema, partitions, properties, TableCreationModes.Replace) {
          super.stageReplace(identifier, schema, partitions, _)
        }
    }

  override def stageCreateOrReplace(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): StagedTable =
    notifyingWhenCommitted(identifier) {
      check(schema, partitions, properties)
      if (!isQbeast(properties)) super.stageCreateOrReplace(identifier, schema, partitions, properties)
      else
        staged(identifier, schema, partitions, properties, TableCreationModes.CreateOrReplace) {
          super.stageCreateOrReplace(identifier, schema, partitions, _)
        }
    }

  override def createTableLike(identifier: Identifier, info: TableInfo, source: Table): Table =
    notifying {
      source match {
        case delta: DeltaTableV2 =>
          MetadataCheck.copied(delta.initialSnapshot.metadata, QbeastProperties.ofTable(info.properties.asScala.toMap))
        case _ => () // IndexedWriteRules checks the command that creates it
      }
      super.createTableLike(identifier, info, source)
    }

  /** Before anything is made or logged; ALTER TABLE is checked in its transaction. */
  private def check(schema: StructType, partitions: Array[Transform], properties: ju.Map[String, String]): Unit = {
    val provider = properties.getOrDefault(TableCatalog.PROP_PROVIDER, spark.sessionState.conf.defaultDataSourceName)
    if (IndexedTables.isQbeast(provider) || IndexedTables.isDelta(provider)) {
      val (own, options) = QbeastProperties.parted(properties)
      MetadataCheck.created(own, schema, partitions.toSeq.flatMap(QbeastProperties.partitionColumn))
      if (IndexedTables.isQbeast(provider)) IndexedWrite.checked(options)
    }
  }

  private def isQbeast(properties: ju.Map[String, String]): Boolean =
    IndexedTables.isQbeast(properties.get(TableCatalog.PROP_PROVIDER))

  private def writable(table: Table): Table = table match {
    case own: UseDeltaTable => own
    case delta: DeltaTableV2 => new UseDeltaTable(delta, false)
    case other => other
  }

  private def staged(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String],
      mode: TableCreationModes.CreationMode
  )(empty: ju.Map[String, String] => StagedTable): StagedTable =
    new IndexedStagedTable(identifier, schema, partitions, properties)(
      () => empty(plain(identifier, schema, partitions, properties)).commitStagedChanges(),
      (rows, options) => createAsSelect(identifier, schema, partitions, properties, options, rows, mode)
    )

  /** The properties of the Delta table that a table USING qbeast is. */
  private def plain(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): ju.Map[String, String] = {
    val (own, options) = QbeastProperties.parted(properties)
    val (wished, rest) = IndexedWrite.parted(options)
    val result = new ju.HashMap[String, String](own.asJava)
    rest.foreach { case (key, value) =>
      result.put(key, value)
      result.put(TableCatalog.OPTION_PREFIX + key, value)
    }
    result.put(TableCatalog.PROP_PROVIDER, "delta")
    // A table that is there already brings its schema and properties along.
    if (schema.nonEmpty && !indexedAt(identifier, properties))
      result.putAll(
        IndexedWrite.settingsOf(
          wished,
          Metadata(configuration = own),
          schema,
          QbeastProperties.partitionColumns(partitions),
          replaces = true,
          keepsSchema = false,
          writes = false
        )
      )
    result
  }

  private def indexedAt(identifier: Identifier, properties: ju.Map[String, String]): Boolean = {
    val place =
      if (isPathIdentifier(identifier)) Some(identifier.name())
      else Option(properties.get(TableCatalog.PROP_LOCATION))
    place.exists { path =>
      val log = DeltaLog.forTable(spark, new Path(path))
      log.tableExists && IndexedTables.onWrite(log.update().metadata.configuration)
    }
  }

  /** As Delta creates a table from a query, with the files written and tagged in the same commit. */
  private def createAsSelect(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String],
      writeOptions: Map[String, String],
      rows: DataFrame,
      mode: TableCreationModes.CreationMode
  ): Unit = {
    val (own, sqlOptions) = QbeastProperties.parted(properties)
    val (wished, options) = IndexedWrite.checked(if (writeOptions.isEmpty) sqlOptions else writeOptions)
    val byPath = isPathIdentifier(identifier)
    val id = TableIdentifier(identifier.name(), identifier.namespace().lastOption)
    val existing = getExistingTableIfExists(id, Some(identifier), mode)
    val place = if (byPath) Some(identifier.name()) else Option(properties.get(TableCatalog.PROP_LOCATION))
    val location = place
      .map(CatalogUtils.stringToURI)
      .orElse(existing.flatMap(_.storage.locationUri))
      .getOrElse(spark.sessionState.catalog.defaultTablePath(id))
    val log = DeltaUtils.getDeltaLogFromTableOrPath(spark, existing, new Path(location), Map.empty)
    // An overwrite by saveAsTable keeps the table's properties; every other statement names them anew.
    val overwrites = options.contains("__v1_save_as_table_overwrite")
    val deltaOptions = new DeltaOptions(options, spark.sessionState.conf)
    val added = IndexedWrite.settingsOf(
      wished,
      if (overwrites) log.update().metadata else Metadata(configuration = own),
      schema,
      QbeastProperties.partitionColumns(partitions),
      replaces = deltaOptions.replaceWhere.isEmpty,
      keepsSchema = overwrites && !deltaOptions.canOverwriteSchema
    )
    val table = verifyTableAndSolidify(
      CatalogTable(
        id,
        if (place.isEmpty) CatalogTableType.MANAGED else CatalogTableType.EXTERNAL,
        DataSource.buildStorageFormatFromOptions(options).copy(locationUri = Some(location)),
        schema,
        provider = Some("delta"),
        partitionColumnNames = QbeastProperties.partitionColumns(partitions),
        properties =
          QbeastProperties.ofTable(own) ++ options.filter(_._1.toLowerCase.startsWith("delta.")) ++ added.asScala,
        comment = Option(properties.get(TableCatalog.PROP_COMMENT))
      ),
      None,
      None
    )
    val write = WriteIntoDelta(
      log,
      mode.mode,
      deltaOptions,
      table.partitionColumnNames,
      table.properties ++ table.comment.map("comment" -> _),
      rows,
      Some(table)
    )
    CreateDeltaTableCommand(
      table,
      existing,
      mode.mode,
      Some(new IndexedCreation(write, added)),
      mode,
      tableByPath = byPath
    )
      .run(spark)
  }
}

/** Properties as a statement gives them: its own, and options under their name and under `option.` and their name. */
private object QbeastProperties {
  // Words of the catalog, which are no properties of the table.
  private val OfCatalog = Set(
    TableCatalog.PROP_LOCATION,
    TableCatalog.PROP_PROVIDER,
    TableCatalog.PROP_COMMENT,
    TableCatalog.PROP_OWNER,
    TableCatalog.PROP_EXTERNAL,
    TableCatalog.PROP_IS_MANAGED_LOCATION,
    "path"
  )

  /** The statement's own properties, and its options. */
  def parted(properties: ju.Map[String, String]): (Map[String, String], Map[String, String]) = {
    val prefix = TableCatalog.OPTION_PREFIX
    val (prefixed, others) = properties.asScala.toMap.partition(_._1.startsWith(prefix))
    val options = prefixed.map { case (key, value) => key.stripPrefix(prefix) -> value }
    (others -- options.keys, options)
  }

  def ofTable(properties: Map[String, String]): Map[String, String] = properties -- OfCatalog

  def partitionColumns(partitions: Array[Transform]): Seq[String] = partitions.toSeq.map { transform =>
    partitionColumn(transform).getOrElse {
      throw UseException.notSupported(s"${transform.name()} is not available for tables USING qbeast.")
    }
  }

  def partitionColumn(transform: Transform): Option[String] =
    if (transform.name() != "identity") None else Some(transform.references().head.fieldNames().mkString("."))
}
