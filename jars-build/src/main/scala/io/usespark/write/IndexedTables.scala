package io.usespark

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame, SaveMode, classic}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.delta.{ColumnWithDefaultExprUtils, DeltaErrors, DeltaOptions}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.WriteIntoDelta
import org.apache.spark.sql.delta.sources.DeltaSourceUtils
import org.apache.spark.sql.delta.usespark.IndexedWrite
import org.apache.spark.sql.sources.{Filter, InsertableRelation}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Which tables index what is inserted into them, and the inserting. */
object IndexedTables {
  private val OnWrite = "use.index.onWrite"
  private val Columns = "columnsToIndex"
  private val ReplacingOptions = Seq("replaceOn", "replaceUsing")

  def isQbeast(provider: String): Boolean = provider != null && provider.equalsIgnoreCase("qbeast")

  def isDelta(provider: String): Boolean = provider != null && provider.equalsIgnoreCase("delta")

  /** Whether the table was made or written through qbeast, and indexing on write was not turned off since. */
  def onWrite(table: DeltaTableV2): Boolean =
    Python.attached && table.tableExists && onWrite(table.initialSnapshot.metadata.configuration)

  /** The properties of a table that a statement makes USING qbeast with these properties of its own. */
  def ofQbeast(properties: Map[String, String]): Map[String, String] = Map(OnWrite -> "true") ++ properties

  def onWrite(configuration: Map[String, String]): Boolean =
    configuration.get(OnWrite).exists(_.equalsIgnoreCase("true"))

  /**
   * Whether rows are indexed that are written into it: the table says so, or the write names the format or columns.
   *
   * Delta's REPLACE ON and REPLACE USING write through commands of their own: such rows stay unindexed.
   */
  def indexes(table: DeltaTableV2, options: CaseInsensitiveStringMap): Boolean = {
    val formatIsQbeast = table match {
      case own: UseDeltaTable => own.formatIsQbeast
      case _ => false
    }
    (onWrite(table) || formatIsQbeast || options.containsKey(Columns)) && !ReplacingOptions.exists(options.containsKey)
  }

  /** Refuses a write into a table by Delta, which would ignore the columns that the write names. */
  def refuseColumns(options: String => Boolean): Unit =
    if (options(Columns))
      throw UseException.notSupported(
        s"$Columns has no effect on this write: name format qbeast, or leave the option out. A stream into a table " +
          "can name format qbeast if the table has the property use.index.onWrite = 'true'."
      )

  /** Whether the write replaces the rows that match its own. Releases of Delta before 4.2 do not have these options. */
  def replacesMatches(options: DeltaOptions): Boolean = ReplacingOptions.exists(DeltaAccess.hasOption(options, _))

  def asQbeast(table: CatalogTable): CatalogTable = table.copy(provider = Some("qbeast"))

  /** Inserts rows into an existing table. */
  def insert(table: DeltaTableV2, options: Map[String, String], mode: SaveMode, data: DataFrame): Unit = {
    val session = data.sparkSession
    val (indexOptions, rest) = IndexedWrite.checkedOptions(options)
    val configuration = table.deltaLog.unsafeVolatileSnapshot.metadata.configuration
    val write = WriteIntoDelta(
      table.deltaLog,
      mode,
      new DeltaOptions(rest, session.sessionState.conf),
      Nil,
      configuration,
      data,
      table.catalogTable
    )
    IndexedWrite.run(write, indexOptions)
    // Cached plans over the table are stale now, as after any insert.
    session.sharedState.cacheManager.recacheByPlan(session.asInstanceOf[classic.SparkSession], table.toLogicalRelation)
  }
}

/** INSERT, `insertInto`, `saveAsTable` (append) and `writeTo` for tables that index what is written. */
final class IndexedWriteBuilder(table: DeltaTableV2, info: LogicalWriteInfo)
    extends WriteBuilder
    with SupportsOverwrite
    with SupportsTruncate
    with SupportsDynamicOverwrite {
  private val options = mutable.HashMap[String, String](info.options.asCaseSensitiveMap().asScala.toSeq: _*)
  private var mode: SaveMode = SaveMode.Append

  override def truncate(): WriteBuilder = overwriting()

  override def overwrite(filters: Array[Filter]): WriteBuilder = {
    if (info.options.containsKey(DeltaOptions.REPLACE_WHERE_OPTION)) throw DeltaErrors.replaceWhereUsedInOverwrite()
    options.put(DeltaOptions.REPLACE_WHERE_OPTION, DeltaSourceUtils.translateFilters(filters).sql)
    overwriting()
  }

  override def overwriteDynamicPartitions(): WriteBuilder = {
    options.put(DeltaOptions.PARTITION_OVERWRITE_MODE_OPTION, DeltaOptions.PARTITION_OVERWRITE_MODE_DYNAMIC)
    overwriting()
  }

  override def build(): V1Write = new V1Write {
    override def toInsertableRelation(): InsertableRelation = (data: DataFrame, _: Boolean) => {
      if (table.spark.sessionState.conf.useNullsForMissingDefaultColumnValues)
        options.put(ColumnWithDefaultExprUtils.USE_NULL_AS_DEFAULT_DELTA_OPTION, "true")
      IndexedTables.insert(table, options.toMap, mode, data)
    }
  }

  private def overwriting(): WriteBuilder = {
    mode = SaveMode.Overwrite
    this
  }
}
