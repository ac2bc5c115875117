package org.apache.spark.sql.delta.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import io.usespark.{DeltaAccess, IndexedTables, Operation, Python, UseException}
import org.apache.spark.sql.{DataFrame, SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, Metadata}
import org.apache.spark.sql.delta.commands._
import org.apache.spark.sql.delta.commands.DMLUtils.TaggedCommitData
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.delta.skipping.clustering.temp.ClusterBySpec
import org.apache.spark.sql.delta.sources.DeltaSourceUtils
import org.apache.spark.sql.execution.{LogicalRDD, SQLExecution}
import org.apache.spark.sql.types.{MetadataBuilder, StructType}

/** Delta's write command with an [[IndexedTransaction]]. */
object IndexedWrite extends DeltaCommand {
  // Another writer can cause so many conflicts only if it changes the table's metadata all the time.
  private val Attempts = 5

  /**
   * Writes and commits as `WriteIntoDelta` does; an append that conflicts with a change of metadata, such as a new
   * revision, starts again.
   *
   * @param write the command
   * @param indexOptions options of USE, such as `columnsToIndex`
   * @param operation the name in the history, if it is not Delta's `WRITE`
   */
  def run(
      write: WriteIntoDelta,
      indexOptions: Map[String, String],
      operation: Option[DeltaOperations.Operation] = None,
      readsItself: Boolean = false
  ): Unit = {
    val restoreNumber = Statements.keepingNumber(write.data.sparkSession)
    var lost = commitOnce(write, indexOptions, operation, readsItself, None)
    while (lost.isDefined) {
      restoreNumber()
      lost = commitOnce(write, indexOptions, operation, readsItself, lost)
    }
  }

  /**
   * An attempt that lost to a change of metadata.
   *
   * @param known the metadata of the first attempt that found the table
   */
  private case class Lost(attempts: Int, conflict: Throwable, known: Option[Metadata])

  /** Writes and commits once; tells of a conflict that requires another attempt. */
  private def commitOnce(
      write: WriteIntoDelta,
      indexOptions: Map[String, String],
      operation: Option[DeltaOperations.Operation],
      readsItself: Boolean,
      before: Option[Lost]
  ): Option[Lost] = {
    val spark = write.data.sparkSession
    val snapshot = write.deltaLog.update(catalogTableOpt = write.catalogTableOpt)
    val known = before.flatMap(_.known).orElse(Option.when(snapshot.version >= 0)(snapshot.metadata))
    // The rows were made for the columns and defaults of that table.
    for (lost <- before; table <- known if !hasSameColumns(table, snapshot.metadata)) throw lost.conflict
    val replaces = replacesAll(write, snapshot.metadata)
    val skipped = snapshot.version >= 0 && (write.mode == SaveMode.Ignore || write.mode == SaveMode.ErrorIfExists)
    val settings =
      if (skipped) ju.Map.of[String, String]()
      else {
        val keepsSchema = !(replaces && write.options.canOverwriteSchema)
        settingsOf(indexOptions, snapshot.metadata, write.data.schema, write.partitionColumns, replaces, keepsSchema)
      }
    val mode = if (replaces) "replace" else if (write.mode == SaveMode.Overwrite) "partial" else "append"
    val transaction = new IndexedTransaction(write.deltaLog, write.catalogTableOpt, snapshot, settings, mode)
    OptimisticTransaction.withActive(transaction) {
      if (hasBeenExecuted(transaction, spark, Some(write.options))) None
      else {
        if (readsItself) transaction.readWholeTable()
        val data =
          try write.writeAndReturnCommitData(transaction, spark)
          catch { case error: Throwable => transaction.discard(); throw error }
        try {
          val version =
            transaction.commitIfNeeded(data.actions, operation.getOrElse(Writes.of(write)), data.stringTags)
          version.foreach(reportCommit(transaction, _))
          None
        } catch {
          case conflict: DeltaConcurrentModificationException =>
            val committed = transaction.versionDespiteConflict
            committed.foreach(reportCommit(transaction, _))
            Option.when(committed.isEmpty) {
              transaction.discard()
              if (!conflict.isInstanceOf[MetadataChangedException] || write.mode != SaveMode.Append || readsItself)
                throw conflict
              val attempts = before.fold(1)(_.attempts + 1)
              if (attempts >= Attempts) throw exhausted(write, conflict)
              Lost(attempts, conflict, known)
            }
        }
      }
    }
  }

  /** Whether it is the same table, with the same columns, apart from how far its identity columns have come. */
  private def hasSameColumns(before: Metadata, after: Metadata): Boolean = {
    def columns(metadata: Metadata): StructType = SchemaMergingUtils.transformColumns(metadata.schema) {
      (_, field, _) =>
        val builder = new MetadataBuilder().withMetadata(field.metadata)
        field.copy(metadata = builder.remove(DeltaSourceUtils.IDENTITY_INFO_HIGHWATERMARK).build())
    }
    before.id == after.id && before.partitionColumns == after.partitionColumns && columns(before) == columns(after)
  }

  private def exhausted(write: WriteIntoDelta, conflict: Throwable): Throwable = {
    val error = new UseException(
      "USE_CONCURRENT_CHANGE",
      "40001",
      s"The append to ${write.deltaLog.dataPath} lost $Attempts times against changes of the table's metadata; " +
        "nothing was committed. Write again when they have ended."
    )
    // An AnalysisException fixes its cause when it is made.
    error.addSuppressed(conflict)
    error
  }

  /** Python keeps the tree of the version that it has just written; a commit does not fail because of that. */
  private def reportCommit(transaction: IndexedTransaction, version: Long): Unit =
    try
      transaction.writeId.foreach(id =>
        Python.text(Operation.WRITE_COMMITTED, Map("write" -> id, "version" -> version))
      )
    catch {
      case NonFatal(error) =>
        logWarning(
          s"Version $version of ${transaction.deltaLog.dataPath} was committed and could not be reported",
          error
        )
    }

  private[usespark] def replacesAll(write: WriteIntoDelta, metadata: Metadata): Boolean =
    write.mode == SaveMode.Overwrite && write.options.replaceWhere.isEmpty &&
      !IndexedTables.replacesMatches(write.options) && !write.options.rearrangeOnly &&
      (metadata.partitionColumns.isEmpty || !write.options.isDynamicPartitionOverwriteMode)

  /** Table properties that the options stand for; refused by Python, before anything is touched, where they do not fit. */
  def settingsOf(
      indexOptions: Map[String, String],
      metadata: Metadata,
      schema: StructType,
      partitionColumns: Seq[String],
      replaces: Boolean,
      keepsSchema: Boolean,
      writes: Boolean = true
  ): ju.Map[String, String] = {
    val known = if (metadata.schemaString == null) new StructType() else metadata.schema
    // As Delta stores it.
    val written = CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema)
    val added = written.filterNot(field => known.exists(_.name.equalsIgnoreCase(field.name)))
    val json = new ObjectMapper()
    val answer = Python.text(
      Operation.INDEX_SETTINGS,
      Map(
        "options" -> json.writeValueAsString(indexOptions.asJava),
        "configuration" -> json.writeValueAsString(metadata.configuration.asJava),
        "schema" -> (if (keepsSchema) StructType(known ++ added) else written).json,
        "partition_columns" ->
          json.writeValueAsString(
            (if (partitionColumns.isEmpty) metadata.partitionColumns else partitionColumns).asJava
          ),
        "replaces" -> replaces,
        "writes" -> writes
      )
    )
    answer.fold(ju.Map.of[String, String]())(json.readValue(_, classOf[ju.HashMap[String, String]]))
  }

  /** The same as `splitOptions`; fails when Python finds a mistake in the options. */
  def checkedOptions(options: Map[String, String]): (Map[String, String], Map[String, String]) = {
    val (indexOptions, rest) = splitOptions(options)
    if (options.nonEmpty) {
      val json = new ObjectMapper()
      val names = Map("others" -> rest.keySet, "of_delta" -> DeltaOptions.validOptionKeys)
      Python.text(
        Operation.CHECK_OPTIONS,
        names.map { case (name, keys) => name -> json.writeValueAsString(keys.asJava) } +
          ("options" -> json.writeValueAsString(indexOptions.asJava))
      )
    }
    (indexOptions, rest)
  }

  /** The options that are ours, under the names that Python knows, and the rest. */
  def splitOptions(options: Map[String, String]): (Map[String, String], Map[String, String]) = {
    val ours = Seq("columnsToIndex", "cubeSize", "columnStats")
    options.partition { case (key, _) => ours.exists(_.equalsIgnoreCase(key)) } match {
      case (indexOptions, rest) =>
        (indexOptions.map { case (key, value) => ours.find(_.equalsIgnoreCase(key)).get -> value }, rest)
    }
  }

  /** Rows, such as a micro-batch, as a batch that may be read more than once, and whose plan equals no other one. */
  def batch(data: DataFrame): DataFrame = batch(data, data.sparkSession)

  /**
   * The same for queries of another session.
   *
   * @param reader the session of these queries; the rows are computed with the settings of their own session
   */
  def batch(data: DataFrame, reader: SparkSession): DataFrame = {
    val dataset = data.asInstanceOf[classic.DataFrame]
    val session = dataset.sparkSession
    // CALL runs during analysis, where no execution has given the thread and its tasks the settings of the session.
    val computed = session.withActive(SQLExecution.withSQLConfPropagated(session)(dataset.queryExecution.toRdd))
    val rows = LogicalRDD.fromDataset(computed, dataset, isStreaming = false)
    // Spark cannot cache rows whose order is known by columns that they lack, such as those behind aliases.
    val unordered = rows.copy(outputOrdering = Nil)(dataset.sparkSession, Some(rows.stats), Some(rows.constraints))
    DataFrameUtils.ofRows(reader, unordered)
  }
}

/**
 * The write of CREATE TABLE … AS SELECT and its kin: Delta's command owns the transaction that commits, a transaction
 * of ours over the same snapshot writes the files and hands its changes over.
 */
class IndexedCreation(base: WriteIntoDelta, settings: ju.Map[String, String])
    extends WriteIntoDelta(
      base.deltaLog,
      base.mode,
      base.options,
      base.partitionColumns,
      base.configuration,
      base.data,
      base.catalogTableOpt,
      base.schemaInCatalog
    ) {
  override def withNewWriterConfiguration(changed: Map[String, String]): WriteIntoDeltaLike =
    new IndexedCreation(base.copy(configuration = changed), settings)

  override def writeAndReturnCommitData(
      owner: OptimisticTransaction,
      spark: SparkSession,
      clusterBy: Option[ClusterBySpec],
      isTableReplace: Boolean
  ): TaggedCommitData[Action] = {
    val mode =
      if (base.mode != SaveMode.Overwrite || owner.readVersion < 0) "append"
      else if (isTableReplace || IndexedWrite.replacesAll(base, owner.metadata)) "replace"
      else "partial"
    val own = new IndexedTransaction(owner.deltaLog, owner.catalogTable, owner.snapshot, settings, mode, Some(owner))
    if (owner.metadata != own.metadata) DeltaAccess.setMetadata(own, owner.metadata)
    try {
      val written = OptimisticTransaction.withActive(own, overrideExistingTransaction = true) {
        base.writeAndReturnCommitData(own, spark, clusterBy, isTableReplace)
      }
      if (owner.metadata != own.metadata) DeltaAccess.setMetadata(owner, own.metadata)
      DeltaAccess.addIdentityMarks(owner, own.identityMarks)
      // Delta's transaction must have the reads of ours, so that it detects conflicts.
      if (owner.readVersion >= 0) owner.readWholeTable()
      written
    } catch {
      case error: Throwable =>
        own.discard()
        throw error
    }
  }
}
