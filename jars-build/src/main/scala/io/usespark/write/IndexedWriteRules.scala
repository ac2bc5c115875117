package io.usespark

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Row, SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.delta.{DataFrameUtils, DeltaDynamicPartitionOverwriteCommand, DeltaOptions}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{CloneTableCommand, CreateDeltaTableCommand}
import org.apache.spark.sql.delta.sources.DeltaSink
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Writes that Delta turns into commands of its own before Spark looks up how the table is written. */
case class IndexedWriteRules(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case command: DeltaDynamicPartitionOverwriteCommand
        if command.query.resolved &&
          IndexedTables.indexes(command.deltaTable, new CaseInsensitiveStringMap(command.writeOptions.asJava)) =>
      IndexedPartitionOverwrite(command.deltaTable, command.query, command.writeOptions)
    case write: WriteToStream =>
      (write.sink, write.catalogTable) match {
        // The sink is made before the catalog's table is known.
        case (sink: IndexedSink, Some(table)) if sink.table.isEmpty => write.copy(sink = sink.copy(table = Some(table)))
        case (sink: DeltaSink, table) =>
          if (table.nonEmpty) IndexedTables.refuseColumns(DeltaAccess.hasOption(sink.options, _))
          if (write.outputMode == OutputMode.Complete()) write.copy(sink = LaidOutSink(sink)) else write
        case _ => write
      }
    // IF NOT EXISTS changes nothing of a table that is there.
    case command: CreateDeltaTableCommand if command.mode != SaveMode.Ignore || command.existingTableOpt.isEmpty =>
      // No catalog sees CLONE, nor LIKE of a table that is not Delta's.
      command.query match {
        case Some(clone: CloneTableCommand) =>
          ReclaimedVersions.checkClone(clone.sourceTable)
          val additions = MetadataCheck.copied(clone.sourceTable.metadata, clone.tablePropertyOverrides)
          if (additions.isEmpty) command
          else
            command.copy(query = Some(clone.copy(tablePropertyOverrides = clone.tablePropertyOverrides ++ additions)))
        case None =>
          val table = command.table
          val database = InheritedProperties.databaseOf(table.identifier)
          val additions = MetadataCheck.created(table.properties, table.schema, table.partitionColumnNames, database)
          if (additions.isEmpty) command
          else command.copy(table = table.copy(properties = table.properties ++ additions))
        case _ => command
      }
    case other => other
  }
}

/** INSERT OVERWRITE of the partitions that the query has rows for. */
case class IndexedPartitionOverwrite(table: DeltaTableV2, query: LogicalPlan, options: Map[String, String])
    extends LeafRunnableCommand {
  override def run(session: SparkSession): Seq[Row] = {
    val dynamic = DeltaOptions.PARTITION_OVERWRITE_MODE_OPTION -> DeltaOptions.PARTITION_OVERWRITE_MODE_DYNAMIC
    val rows = DataFrameUtils.ofRows(session, query)
    IndexedTables.insert(table, table.options ++ options + dynamic, SaveMode.Overwrite, rows)
    Nil
  }
}
