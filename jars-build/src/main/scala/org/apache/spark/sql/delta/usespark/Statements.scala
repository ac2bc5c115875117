package org.apache.spark.sql.delta.usespark

import scala.annotation.tailrec

import io.usespark.Python
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.delta.{DeltaConcurrentModificationException, TransactionExecutionObserver}
import org.apache.spark.sql.delta.commands.{DeleteCommand, MergeIntoCommand, UpdateCommand}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.command.RunnableCommand
import org.apache.spark.sql.execution.metric.SQLMetrics

/** Runs Delta's statements with transactions that keep the layout of the rows. */
object Statements extends Logging {
  private val Enabled = "spark.qbeast.use.statements.enabled"
  private val NumberOfWrite = "spark.databricks.delta.write.txnVersion"
  private val Overwrite = StatementKind(replacesRows = true)

  /** Whether a session runs statements with transactions of ours. */
  def areOurs(session: SparkSession): Boolean =
    Python.attached && !session.conf.get(Enabled, "true").equalsIgnoreCase("false")

  /** Runs a write whose rows replace others, with one transaction of Delta's on this thread. */
  def overwriting[T](write: => T): T =
    if (!areOurs(SparkSession.active)) write
    else TransactionExecutionObserver.withObserver(new StatementObserver(Overwrite, 0))(write)

  /** Runs a command once, or several times as long as it loses to rewrites of ours only. */
  def repeating(command: RunnableCommand, kind: StatementKind, session: SparkSession): Seq[Row] = {
    val restoreNumber = keepingNumber(session)
    @tailrec def run(attempt: RunnableCommand, repeats: Int): Seq[Row] = {
      val merge = Some(attempt).collect { case merge: MergeIntoCommand => merge }
      val observer = new StatementObserver(kind, repeats, merge)
      val result =
        try Right(TransactionExecutionObserver.withObserver(observer)(attempt.run(session)))
        catch {
          case conflict: DeltaConcurrentModificationException if observer.lostToRewrites.isDefined =>
            observer.lostToRewrites.foreach(_.discard())
            Left(conflict)
        }
      result match {
        case Right(rows) =>
          if (attempt ne command) showMetrics(attempt, command, session)
          rows
        case Left(conflict) =>
          logInfo(s"${command.nodeName} runs again, since files that it read were rewritten: ${conflict.getMessage}")
          restoreNumber()
          run(copyOf(command), repeats + 1)
      }
    }
    run(command, 0)
  }

  /** Gives a session the number of its idempotent write again; Delta may unset it when an attempt has taken it. */
  private[usespark] def keepingNumber(session: SparkSession): () => Unit = {
    val number = session.conf.getOption(NumberOfWrite)
    () => number.foreach(session.conf.set(NumberOfWrite, _))
  }

  /** The same command with counters of its own. */
  private def copyOf(command: RunnableCommand): RunnableCommand = command match {
    case delete: DeleteCommand => delete.copy()
    case update: UpdateCommand => update.copy()
    case merge: MergeIntoCommand => merge.copy()
    case other => throw new IllegalArgumentException(s"${other.nodeName} cannot run again")
  }

  /** Spark shows the metrics of the command that it has planned. */
  private def showMetrics(done: RunnableCommand, planned: RunnableCommand, session: SparkSession): Unit = {
    for ((name, metric) <- done.metrics; shown <- planned.metrics.get(name)) shown.set(metric.value)
    val execution = session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(session.sparkContext, execution, planned.metrics.values.toSeq)
  }
}
