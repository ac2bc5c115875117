package io.usespark

import org.apache.spark.sql.{Row, SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.DeltaDynamicPartitionOverwriteCommand
import org.apache.spark.sql.delta.commands._
import org.apache.spark.sql.delta.sources.{DeltaDataSource, DeltaSQLConf}
import org.apache.spark.sql.delta.usespark.{StatementKind, Statements}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.command.{ExecutedCommandExec, LeafRunnableCommand, RunnableCommand}
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.execution.metric.SQLMetric

/** Plans Delta's statements that rewrite rows: they keep the layout, and run again when they lose to a rewrite. */
case class StatementStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] =
    if (!Statements.areOurs(session)) Nil
    else
      plan match {
        case command: DeleteCommand => repeated(command, DeltaSQLConf.DELETE_USE_PERSISTENT_DELETION_VECTORS.key)
        case command: UpdateCommand => repeated(command, DeltaSQLConf.UPDATE_USE_PERSISTENT_DELETION_VECTORS.key)
        case command: MergeIntoCommand => repeated(command, DeltaSQLConf.MERGE_USE_PERSISTENT_DELETION_VECTORS.key)
        case command: DeltaDynamicPartitionOverwriteCommand => overwriting(command)
        case command: SaveIntoDataSourceCommand if command.mode == SaveMode.Overwrite && isDelta(command) =>
          overwriting(command)
        // Releases of Delta before 4.3 do not have the class.
        case command: RunnableCommand if command.getClass.getSimpleName == "DeltaInsertReplaceOnOrUsingCommand" =>
          overwriting(command)
        case _ => Nil
      }

  // A subclass is `format("qbeast")`.
  private def isDelta(command: SaveIntoDataSourceCommand): Boolean =
    command.dataSource.getClass == classOf[DeltaDataSource]

  private def repeated(command: RunnableCommand, vectors: String): Seq[SparkPlan] =
    planned(command)(Statements.repeating(command, StatementKind(replacesRows = false, Some(vectors)), _))

  private def overwriting(command: RunnableCommand): Seq[SparkPlan] =
    planned(command)(session => Statements.overwriting(command.run(session)))

  private def planned(command: RunnableCommand)(run: SparkSession => Seq[Row]): Seq[SparkPlan] =
    Seq(ExecutedCommandExec(LaidOutStatement(command)(run)))
}

/** A command of Delta's, run by us; Spark shows it as it is. */
final case class LaidOutStatement(command: RunnableCommand)(body: SparkSession => Seq[Row])
    extends LeafRunnableCommand {
  override val output: Seq[Attribute] = command.output
  override lazy val metrics: Map[String, SQLMetric] = command.metrics
  override def innerChildren: Seq[QueryPlan[_]] = Seq(command)
  override def nodeName: String = command.nodeName
  override def run(session: SparkSession): Seq[Row] = body(session)
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(body)
}
