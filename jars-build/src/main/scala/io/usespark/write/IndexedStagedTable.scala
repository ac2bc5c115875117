package io.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.connector.catalog.{Identifier, StagedTable, SupportsWrite, TableCapability}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.sources.InsertableRelation
import org.apache.spark.sql.types.StructType

/**
 * A table USING qbeast between the statement that makes it and its one commit; holds the rows until then.
 *
 * @param createEmpty makes the table without rows
 * @param createAs makes the table with these rows, written with these options
 */
final class IndexedStagedTable(
    identifier: Identifier,
    override val schema: StructType,
    override val partitioning: Array[Transform],
    override val properties: ju.Map[String, String]
)(createEmpty: () => Unit, createAs: (DataFrame, Map[String, String]) => Unit)
    extends StagedTable
    with SupportsWrite {
  private var query: Option[DataFrame] = None
  private var options: Map[String, String] = Map.empty

  override def name(): String = identifier.name()
  override def capabilities(): ju.Set[TableCapability] =
    ju.EnumSet.of(TableCapability.V1_BATCH_WRITE, TableCapability.TRUNCATE)
  override def commitStagedChanges(): Unit = query.fold(createEmpty())(createAs(_, options))
  override def abortStagedChanges(): Unit = ()

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    options = info.options.asCaseSensitiveMap().asScala.toMap
    new WriteBuilder with SupportsTruncate {
      override def truncate(): WriteBuilder = this
      override def build(): V1Write = new V1Write {
        override def toInsertableRelation(): InsertableRelation = (rows: DataFrame, _: Boolean) => query = Some(rows)
      }
    }
  }
}
