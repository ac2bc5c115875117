package io.usespark

import java.util.Locale
import java.{util => ju}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, CatalogUtils}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.delta.{DeltaLog, DeltaOptions}
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.catalog.{DeltaCatalog, DeltaTableV2}
import org.apache.spark.sql.delta.commands.{CreateDeltaTableCommand, TableCreationModes, WriteIntoDelta}
import org.apache.spark.sql.delta.usespark.{ExistingTables, IndexedCreation, IndexedWrite}
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.types.StructType

/**
 * `spark_catalog`: Delta's catalog, which also finds `<table>.<virtual table>` by name and by path, and makes tables
 * `USING qbeast`, which are Delta tables that index what is written to them.
 */
class UseDeltaCatalog extends DeltaCatalog with TablesLike {
  override def loadTable(identifier: Identifier): Table =
    virtualTable(identifier).getOrElse {
      // Without a virtual table of that name, there is no `db.t.name`. Spark would ask for a shorter name.
      if (identifier.namespace().length == 2) throw new NoSuchTableException(identifier)
      writable(super.loadTable(identifier))
    }

  /** Loads a table to write to it. */
  override def loadTable(identifier: Identifier, privileges: ju.Set[TableWritePrivilege]): Table = {
    val formatIsQbeast =
      NamedFormat.taken() || (isPathIdentifier(identifier) && IndexedTables.isQbeast(identifier.namespace().head))
    writable(super.loadTable(identifier, privileges)) match {
      case table: UseDeltaTable if formatIsQbeast => new UseDeltaTable(table, true)
      case table => table
    }
  }

  override def tableExists(identifier: Identifier): Boolean =
    virtualTable(identifier).isDefined || super.tableExists(identifier)

  override def loadTable(identifier: Identifier, version: String): Table = {
    refuseTimeTravel(identifier)
    ReclaimedVersions.refused(name(), version.toLongOption, super.loadTable(identifier))(
      super.loadTable(identifier, version)
    )
  }

  override def loadTable(identifier: Identifier, timestamp: Long): Table = {
    refuseTimeTravel(identifier)
    ReclaimedVersions.refused(name(), None, super.loadTable(identifier))(super.loadTable(identifier, timestamp))
  }

  private def refuseTimeTravel(identifier: Identifier): Unit =
    if (virtualTable(identifier).isDefined) throw UseException.timeTravel

  private def virtualTable(identifier: Identifier): Option[Table] = {
    val parts = identifier.namespace()
    Bridge.declarations().virtualTable(identifier.name()).flatMap { schema: StructType =>
      // `t.optimizations` is table t of the current database, unless there is a database t, in which a statement may
      // create a table of that name.
      if (parts.isEmpty || (parts.length == 1 && super.namespaceExists(parts))) None
      else {
        val owner = if (parts.length == 1) currentDatabase +: parts else parts
        val table = Identifiers.quoted(name() +: owner.toSeq)
        TablePaths.checked(table)(loadOwner(Identifier.of(owner.init, owner.last))).collect {
          case delta: DeltaTableV2 if delta.tableExists =>
            VirtualTable.of(table, identifier.name().toLowerCase(Locale.ROOT), schema)
        }
      }
    }
  }

  private def currentDatabase = SparkSession.active.sessionState.catalog.getCurrentDatabase

  /** Whether `t.optimizations` is a virtual table in a view of a database, and not a table of a database `t`. */
  def isVirtualTable(database: String, name: Seq[String]): Boolean =
    !super.namespaceExists(name.init.toArray) &&
      virtualTable(Identifier.of((database +: name.init).toArray, name.last)).isDefined

  /** Refuses a statement that would change a virtual table, or make a table of its name. */
  private def refuseVirtual(statement: String, identifier: Identifier): Unit =
    virtualTable(identifier).foreach(table => throw UseException.readOnly(statement, table.name()))

  /**
   * The table of a virtual table. A catalog of a deployment that extends this one may refuse it, and is asked for what is
   * there: other names could be virtual tables again.
   */
  private def loadOwner(identifier: Identifier): Table =
    if (!Metastore.restricts(this)) super.loadTable(identifier)
    else if (super.tableExists(identifier)) loadTable(identifier)
    else throw new NoSuchTableException(identifier)

  // ------------------------------------------------------------------------------- what the optimization service hears

  /** Delta would change the newest version of a table whose path names an older one. */
  override def alterTable(identifier: Identifier, changes: TableChange*): Table = {
    refuseVirtual("ALTER TABLE", identifier)
    if (isPathIdentifier(identifier)) TablePaths.checked(fullName(identifier))(super.loadTable(identifier))
    notifying(super.alterTable(identifier, changes: _*))
  }

  override def dropTable(identifier: Identifier): Boolean = {
    refuseVirtual("DROP TABLE", identifier)
    notifyingIfDropped(identifier, super.dropTable(identifier))
  }

  override def purgeTable(identifier: Identifier): Boolean = {
    refuseVirtual("DROP TABLE", identifier)
    notifyingIfDropped(identifier, super.purgeTable(identifier))
  }

  override def renameTable(from: Identifier, to: Identifier): Unit = {
    refuseVirtual("ALTER TABLE … RENAME", from)
    super.renameTable(from, to)
    CatalogChanges.renamed(name(), fullName(from), loadTable(to))
  }

  override protected def notifying(make: => Table): Table = {
    val made = make
    CatalogChanges.made(name(), made)
    made
  }

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

  // ----------------------------------------------------------------------------------- defaults of a database's tables

  override def createNamespace(namespace: Array[String], metadata: ju.Map[String, String]): Unit = {
    checkDefaults(metadata.asScala.toMap)
    super.createNamespace(namespace, metadata)
    InheritedProperties.forget()
  }

  override def alterNamespace(namespace: Array[String], changes: NamespaceChange*): Unit = {
    checkDefaults(changes.collect { case set: NamespaceChange.SetProperty => set.property -> set.value }.toMap)
    super.alterNamespace(namespace, changes: _*)
    InheritedProperties.forget()
  }

  private def checkDefaults(properties: Map[String, String]): Unit =
    if (Python.attached && MetadataCheck.areOurs(properties.keys)) {
      val text = new ObjectMapper().writeValueAsString(properties.asJava)
      Python.text(Operation.CHECK_DATABASE, Map("properties" -> text))
    }

  // ------------------------------------------------------------------------------------------- tables USING qbeast

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
      val table = checked(new NewTable(identifier, schema, partitions, properties))
      val ofDelta = if (table.isQbeast) deltaProperties(table, TableCreationModes.Create) else table.properties
      super.createTable(identifier, schema, partitions, ofDelta)
    }

  override def stageCreate(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): StagedTable =
    staged(new NewTable(identifier, schema, partitions, properties), TableCreationModes.Create) {
      super.stageCreate(identifier, schema, partitions, _)
    }

  override def stageReplace(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): StagedTable =
    staged(new NewTable(identifier, schema, partitions, properties), TableCreationModes.Replace) {
      super.stageReplace(identifier, schema, partitions, _)
    }

  override def stageCreateOrReplace(
      identifier: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: ju.Map[String, String]
  ): StagedTable =
    staged(new NewTable(identifier, schema, partitions, properties), TableCreationModes.CreateOrReplace) {
      super.stageCreateOrReplace(identifier, schema, partitions, _)
    }

  /** A staged table, of Delta's own for tables that are not USING qbeast; `asDelta` stages it with some properties. */
  private def staged(unchecked: NewTable, mode: TableCreationModes.CreationMode)(
      asDelta: ju.Map[String, String] => StagedTable
  ): StagedTable = {
    val table = checked(unchecked)
    val made =
      if (!table.isQbeast) asDelta(table.properties)
      else
        new IndexedStagedTable(table.identifier, table.schema, table.partitions, table.properties)(
          () => asDelta(deltaProperties(table, mode)).commitStagedChanges(),
          (rows, options) => createAsSelect(table, options, rows, mode)
        )
    val replaces = !table.isQbeast && mode != TableCreationModes.Create
    NotifyingStagedTable.of(made, replaces)(CatalogChanges.made(name(), loadTable(table.identifier)))
  }

  /**
   * The table with the properties that the statement must set in addition to its own. Called before anything is made or
   * logged; ALTER TABLE is checked in its transaction.
   */
  private def checked(table: NewTable): NewTable = {
    refuseVirtual("CREATE TABLE", table.identifier)
    val provider =
      table.properties.getOrDefault(TableCatalog.PROP_PROVIDER, spark.sessionState.conf.defaultDataSourceName)
    if (IndexedTables.isQbeast(provider) || IndexedTables.isDelta(provider)) {
      // Delta ignores what are options of qbeast.
      val ignored =
        if (IndexedTables.isQbeast(provider)) Map.empty[String, String]
        else table.options.filter { case (key, _) => Bridge.declarations().isForeignProperty(key) }
      val database = if (isPathIdentifier(table.identifier)) None else table.identifier.namespace().lastOption
      val properties = table.ownProperties ++ ignored
      val additions = MetadataCheck.created(properties, table.schema, table.plainPartitionColumns, database)
      if (IndexedTables.isQbeast(provider)) IndexedWrite.checkedOptions(table.options)
      table.withProperties(additions)
    } else table
  }

  private def writable(table: Table): Table = table match {
    case own: UseDeltaTable => own
    case delta: DeltaTableV2 => new UseDeltaTable(delta, false)
    case other => other
  }

  /** The properties of the Delta table that a table USING qbeast is. */
  private def deltaProperties(table: NewTable, mode: TableCreationModes.CreationMode): ju.Map[String, String] = {
    val (indexOptions, rest) = IndexedWrite.splitOptions(table.options)
    val result = new ju.HashMap[String, String](table.ownProperties.asJava)
    rest.foreach { case (key, value) =>
      result.put(key, value)
      result.put(TableCatalog.OPTION_PREFIX + key, value)
    }
    result.put(TableCatalog.PROP_PROVIDER, "delta")
    val present = configurationAt(table)
    val indexesWrites = present.exists(IndexedTables.onWrite)
    // A table that qbeast-spark has written can be registered.
    if (table.schema.isEmpty && !indexesWrites && !present.forall(IndexedRelation.isIndexed))
      throw UseException.notSupported(
        "At the location is a Delta table that does not index what is written to it, and CREATE TABLE … USING qbeast " +
          "does not change its properties: create the table USING delta, then set use.index.columns and " +
          "use.index.onWrite = 'true' with ALTER TABLE."
      )
    // A table that is there already brings its schema and properties along, unless it is replaced.
    if (table.schema.nonEmpty && (replaces(table, mode) || !indexesWrites))
      result.putAll(
        IndexedWrite.settingsOf(
          indexOptions,
          Metadata(configuration = table.ownProperties),
          table.schema,
          table.partitionColumns,
          replaces = true,
          keepsSchema = false,
          writes = false
        )
      )
    result
  }

  /** Whether Delta replaces a table: only one that the metastore knows, not one at a path. */
  private def replaces(table: NewTable, mode: TableCreationModes.CreationMode): Boolean = {
    val id = TableIdentifier(table.identifier.name(), table.identifier.namespace().lastOption)
    mode != TableCreationModes.Create && ExistingTables.find(this, id, table.identifier, mode).nonEmpty
  }

  /** The properties of the table at the place that the statement names; None without a table. */
  private def configurationAt(table: NewTable): Option[Map[String, String]] = placeOf(table)
    .map(path => DeltaLog.forTable(spark, new Path(path)))
    .filter(_.tableExists)
    .map(_.update().metadata.configuration)

  private def placeOf(table: NewTable): Option[String] =
    if (isPathIdentifier(table.identifier)) Some(table.identifier.name())
    else Option(table.properties.get(TableCatalog.PROP_LOCATION))

  /** As Delta creates a table from a query, with the files written and tagged in the same commit. */
  private def createAsSelect(
      table: NewTable,
      writeOptions: Map[String, String],
      rows: DataFrame,
      mode: TableCreationModes.CreationMode
  ): Unit = {
    val identifier = table.identifier
    val (indexOptions, options) =
      IndexedWrite.checkedOptions(if (writeOptions.isEmpty) table.options else writeOptions)
    val id = TableIdentifier(identifier.name(), identifier.namespace().lastOption)
    val existing = ExistingTables.find(this, id, identifier, mode)
    val place = placeOf(table)
    val location = place
      .map(CatalogUtils.stringToURI)
      .orElse(existing.flatMap(_.storage.locationUri))
      .getOrElse(spark.sessionState.catalog.defaultTablePath(id))
    val log = existing.fold(DeltaLog.forTable(spark, new Path(location)))(DeltaLog.forTable(spark, _))
    // An overwrite by saveAsTable keeps the table's properties; every other statement names them anew.
    val overwrites = options.contains("__v1_save_as_table_overwrite")
    val deltaOptions = new DeltaOptions(options, spark.sessionState.conf)
    val added = IndexedWrite.settingsOf(
      indexOptions,
      if (overwrites) log.update().metadata else Metadata(configuration = table.ownProperties),
      table.schema,
      table.partitionColumns,
      replaces = deltaOptions.replaceWhere.isEmpty,
      keepsSchema = overwrites && !deltaOptions.canOverwriteSchema
    )
    val definition = verifyTableAndSolidify(
      CatalogTable(
        id,
        if (place.isEmpty) CatalogTableType.MANAGED else CatalogTableType.EXTERNAL,
        DataSource.buildStorageFormatFromOptions(options).copy(locationUri = Some(location)),
        table.schema,
        provider = Some("delta"),
        partitionColumnNames = table.partitionColumns,
        properties = NewTable.withoutWordsOfCatalog(table.ownProperties) ++
          options.filter(_._1.toLowerCase(Locale.ROOT).startsWith("delta.")) ++ added.asScala,
        comment = Option(table.properties.get(TableCatalog.PROP_COMMENT))
      ),
      None,
      None
    )
    val write = WriteIntoDelta(
      log,
      mode.mode,
      deltaOptions,
      definition.partitionColumnNames,
      definition.properties ++ definition.comment.map("comment" -> _),
      rows,
      Some(definition)
    )
    val creation = Some(new IndexedCreation(write, added))
    val byPath = isPathIdentifier(identifier)
    CreateDeltaTableCommand(definition, existing, mode.mode, creation, mode, tableByPath = byPath).run(spark)
  }
}
