package io.usespark

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, SQLContext, SaveMode}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaErrors, DeltaLog, DeltaOperations, DeltaOptions}
import org.apache.spark.sql.delta.DeltaTable
import org.apache.spark.sql.delta.commands.WriteIntoDelta
import org.apache.spark.sql.delta.sources.{DeltaDataSource, DeltaSourceUtils}
import org.apache.spark.sql.delta.usespark.{IndexedWrite, StreamRows}
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.BaseRelation
import org.apache.spark.sql.streaming.OutputMode

/** `format("qbeast")`: reads as Delta does, and indexes what it writes. */
class UseDataSource extends DeltaDataSource {
  NamedFormat.made()

  override def shortName(): String = "qbeast"

  override def createRelation(
      context: SQLContext,
      mode: SaveMode,
      parameters: Map[String, String],
      data: DataFrame
  ): BaseRelation = {
    val session = context.sparkSession
    val (indexOptions, rest) = IndexedWrite.checkedOptions(parameters)
    val path = rest.getOrElse("path", throw DeltaErrors.pathNotSpecifiedException)
    val log = DeltaLog.forTable(session, new Path(path), rest)
    val options = new DeltaOptions(rest, session.sessionState.conf)
    if (IndexedTables.replacesMatches(options))
      throw UseException.notSupported(
        "replaceOn and replaceUsing are not available with format qbeast: use format delta."
      )
    val partitionColumns =
      rest.get(DeltaSourceUtils.PARTITIONING_COLUMNS_KEY).map(DeltaDataSource.decodePartitioningColumns).getOrElse(Nil)
    val configuration = DeltaConfigs.validateConfigurations(rest.filter(_._1.startsWith("delta.")))
    IndexedWrite.run(WriteIntoDelta(log, mode, options, partitionColumns, configuration, data, None), indexOptions)
    log.createRelation(catalogTableOpt = None)
  }

  override def createSink(
      context: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode
  ): Sink = {
    val path = parameters.getOrElse("path", throw DeltaErrors.pathNotSpecifiedException)
    if (outputMode != OutputMode.Append && outputMode != OutputMode.Complete)
      throw DeltaErrors.outputModeNotSupportedException(getClass.getName, outputMode.toString)
    IndexedWrite.checkedOptions(parameters)
    new IndexedSink(context, new Path(path), partitionColumns, outputMode, parameters, None)
  }
}

/**
 * Writes each micro-batch as one indexed commit.
 *
 * The commit carries the query's id and the batch's number, and a batch that the table has already is left out: so a
 * batch that is replayed after a failure is written once.
 */
final case class IndexedSink(
    context: SQLContext,
    path: Path,
    partitionColumns: Seq[String],
    outputMode: OutputMode,
    parameters: Map[String, String],
    table: Option[CatalogTable]
) extends Sink {
  // Known only while a batch runs.
  private lazy val queryId: String = context.sparkContext.getLocalProperty("sql.streaming.queryId")

  override def addBatch(batchId: Long, data: DataFrame): Unit = {
    val session = data.sparkSession
    val (indexOptions, rest) = IndexedWrite.splitOptions(parameters)
    val exactlyOnce = Map(DeltaOptions.TXN_APP_ID -> queryId, DeltaOptions.TXN_VERSION -> batchId.toString)
    val isComplete = outputMode == OutputMode.Complete()
    val options =
      new DeltaOptions((if (isComplete) replacingAll(rest) else rest) ++ exactlyOnce, session.sessionState.conf)
    val log = table.fold(DeltaLog.forTable(session, path))(DeltaLog.forTable(session, _))
    val mode = if (isComplete) SaveMode.Overwrite else SaveMode.Append
    val readsItself = data.queryExecution.analyzed.collectFirst {
      case DeltaTable(index) if index.deltaLog.isSameLogAs(log) => true
    }.nonEmpty
    val rows = StreamRows.fitting(IndexedWrite.batch(data), log.update(catalogTableOpt = table), options, mode)
    val operation = DeltaOperations.StreamingUpdate(outputMode, queryId, batchId, options.userMetadata)
    IndexedWrite.run(
      WriteIntoDelta(log, mode, options, partitionColumns, Map.empty, rows, table),
      indexOptions,
      Some(operation),
      readsItself
    )
  }

  /** Options of a write that replaces all rows, whatever they or the session say about overwrites of some of them. */
  private def replacingAll(options: Map[String, String]): Map[String, String] = {
    val ofSome = Seq(DeltaOptions.REPLACE_WHERE_OPTION, DeltaOptions.PARTITION_OVERWRITE_MODE_OPTION)
    options.filterNot { case (key, _) => ofSome.exists(_.equalsIgnoreCase(key)) } +
      (DeltaOptions.PARTITION_OVERWRITE_MODE_OPTION -> "static")
  }

  override def toString: String = s"IndexedSink[$path]"
}
