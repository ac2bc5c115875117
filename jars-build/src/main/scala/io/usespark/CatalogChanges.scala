package io.usespark

import java.{util => ju}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.constraints.Constraint
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** Tells Python of changes that this session made to the catalog; a statement never fails or waits for it. */
object CatalogChanges extends Logging {

  /** Tells of a table that was made, replaced or altered. */
  def made(catalog: String, table: => Table): Unit = telling(tellOf("changed", catalog, "", table))

  def renamed(catalog: String, from: String, table: => Table): Unit = telling(tellOf("renamed", catalog, from, table))

  def dropped(name: String): Unit = telling(tell("dropped", name, "", ""))

  private def tellOf(kind: String, catalog: String, before: String, table: Table): Unit = table match {
    case delta: DeltaTableV2 => tell(kind, Identifiers.of(catalog, delta), before, delta.deltaLog.dataPath.toString)
    case _ if before.nonEmpty => tell("dropped", before, "", "")
    case _ => ()
  }

  private def tell(kind: String, name: String, before: String, location: String): Unit =
    Python.text(
      "catalog_changed",
      Map("kind" -> kind, "name" -> name, "before" -> before, "location" -> location)
    )

  private def telling(tell: => Unit): Unit =
    if (Bridge.listening())
      try tell
      catch { case NonFatal(error) => logWarning(s"The optimization service was not told of a change: $error") }
}

/** A staged table that tells of its commit. */
class ToldStagedTable(staged: StagedTable, afterwards: () => Unit) extends StagedTable {
  override def name(): String = staged.name()
  override def columns(): Array[Column] = staged.columns()
  override def partitioning(): Array[Transform] = staged.partitioning()
  override def properties(): ju.Map[String, String] = staged.properties()
  override def constraints(): Array[Constraint] = staged.constraints()
  override def capabilities(): ju.Set[TableCapability] = staged.capabilities()
  override def reportDriverMetrics(): Array[org.apache.spark.sql.connector.metric.CustomTaskMetric] =
    staged.reportDriverMetrics()
  override def abortStagedChanges(): Unit = staged.abortStagedChanges()
  override def commitStagedChanges(): Unit = {
    staged.commitStagedChanges()
    afterwards()
  }
}

/** The same for one that takes rows. */
final class ToldWritableTable(staged: StagedTable with SupportsWrite, afterwards: () => Unit)
    extends ToldStagedTable(staged, afterwards)
    with SupportsWrite {
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = staged.newWriteBuilder(info)
}

object ToldStagedTable {
  def of(staged: StagedTable)(afterwards: => Unit): StagedTable =
    if (!Bridge.listening()) staged
    else
      staged match {
        case rows: StagedTable with SupportsWrite => new ToldWritableTable(rows, () => afterwards)
        case other => new ToldStagedTable(other, () => afterwards)
      }
}
