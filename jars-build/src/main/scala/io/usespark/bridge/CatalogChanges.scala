package io.usespark

import java.{util => ju}

import scala.annotation.nowarn
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.usespark.Statements
import org.apache.spark.sql.types.StructType

/** Reports changes that this session made to the catalog to Python; a statement never fails or waits for it. */
object CatalogChanges extends Logging {

  /** Notifies the service of a table that was created, replaced or altered. */
  def made(catalog: String, table: => Table): Unit = loggingFailure(sendOf("changed", catalog, "", table))

  def renamed(catalog: String, from: String, table: => Table): Unit =
    loggingFailure(sendOf("renamed", catalog, from, table))

  def dropped(name: String): Unit = loggingFailure(send("dropped", name, "", ""))

  private def sendOf(kind: String, catalog: String, before: String, table: Table): Unit = table match {
    case delta: DeltaTableV2 => send(kind, Identifiers.of(catalog, delta), before, delta.deltaLog.dataPath.toString)
    case _ if before.nonEmpty => send("dropped", before, "", "")
    case _ => ()
  }

  private def send(kind: String, name: String, before: String, location: String): Unit =
    Python.text(
      Operation.CATALOG_CHANGED,
      Map("kind" -> kind, "name" -> name, "before" -> before, "location" -> location)
    )

  private def loggingFailure(send: => Unit): Unit =
    if (Bridge.listening())
      try send
      catch { case NonFatal(error) => logWarning(s"The optimization service was not notified of a change: $error") }
}

/** A staged table: its rows keep their layout where they replace others, and the service is notified of its commit. */
final class NotifyingStagedTable(
    override protected val staged: StagedTable with SupportsWrite,
    replaces: Boolean,
    afterwards: () => Unit
) extends StagedTable
    with SupportsWrite
    with StagedConstraints {
  override def name(): String = staged.name()
  override def columns(): Array[Column] = staged.columns()
  @nowarn("cat=deprecation") override def schema(): StructType = staged.schema()
  override def partitioning(): Array[Transform] = staged.partitioning()
  override def properties(): ju.Map[String, String] = staged.properties()
  override def capabilities(): ju.Set[TableCapability] = staged.capabilities()
  override def reportDriverMetrics(): Array[org.apache.spark.sql.connector.metric.CustomTaskMetric] =
    staged.reportDriverMetrics()
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    if (replaces) IndexedTables.refuseColumns(info.options.containsKey(_))
    staged.newWriteBuilder(info)
  }
  override def abortStagedChanges(): Unit = staged.abortStagedChanges()
  override def commitStagedChanges(): Unit = {
    if (replaces) Statements.overwriting(staged.commitStagedChanges()) else staged.commitStagedChanges()
    if (Bridge.listening()) afterwards()
  }
}

object NotifyingStagedTable {

  /** All staged tables of Delta and ours take rows. */
  def of(staged: StagedTable, replaces: Boolean)(afterwards: => Unit): StagedTable = staged match {
    case rows: StagedTable with SupportsWrite if replaces || Bridge.listening() =>
      new NotifyingStagedTable(rows, replaces, () => afterwards)
    case other => other
  }
}
