package org.apache.spark.sql.delta.usespark

import scala.collection.mutable

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, Expression, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.delta.{DataFrameUtils, DeltaColumnMapping, OptimisticTransaction}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats._
import org.apache.spark.sql.execution.datasources.{WriteTaskStats, WriteTaskStatsTracker}
import org.apache.spark.sql.types.StructType

/** Rows of one cube in one file: how many, and their smallest and largest weight. */
final class WrittenBlock(var rows: Long, var lowest: Int, var highest: Int) extends Serializable {
  def add(weight: Int): Unit = {
    rows += 1
    if (weight < lowest) lowest = weight
    if (weight > highest) highest = weight
  }
}

/**
 * A transaction that notes the blocks of its files while they are written, as well as Delta's own statistics.
 *
 * Delta takes the statistics from the very rows that the writer gets; so do these.
 */
trait BlockTracking extends OptimisticTransaction {
  private var placement: Option[(Column, Column)] = None
  private var tracker: Option[BlockTracker] = None

  /** Notes the blocks of the files that `body` writes; `cube` (BIGINT) and `weight` (INT), or null, over stored names. */
  def tracking[T](cube: Column, weight: Column)(body: => T): T = {
    placement = Option(cube).map((_, weight))
    tracker = None
    try body
    finally placement = None
  }

  /** Puts the blocks of a written file as `[cube, rows, lowest, highest]`; nothing where no statistics were taken. */
  def putBlocks(file: AddFile, json: ObjectNode): Unit =
    for (blockTracker <- tracker; blocks <- blockTracker.blocks.get(file.toPath.getName)) {
      val all = json.putArray("blocks")
      blocks.foreach { case (cube, block) =>
        all.addArray().add(cube).add(block.rows).add(block.lowest).add(block.highest)
      }
    }

  override protected def getOptionalStatsTrackerAndStatsCollection(
      output: Seq[Attribute],
      outputPath: Path,
      partitionSchema: StructType,
      data: DataFrame
  ): (Option[DeltaJobStatisticsTracker], Option[StatisticsCollection]) = {
    val (delta, collection) =
      super.getOptionalStatsTrackerAndStatsCollection(output, outputPath, partitionSchema, data)
    val chosen = for (base <- delta; (cube, weight) <- placement) yield {
      // A column that the rows leave out is null in the files.
      val absent = DeltaColumnMapping.renameColumns(metadata.schema).filterNot { field =>
        (base.dataCols.map(_.name) ++ partitionSchema.map(_.name)).contains(field.name)
      }
      // Analysis may give attributes new ids: those of the relation below belong to the expressions.
      val plan =
        DataFrameUtils
          .ofRows(data.sparkSession, LocalRelation(base.dataCols ++ DataTypeUtils.toAttributes(StructType(absent))))
          .select(cube, weight)
          .queryExecution
          .analyzed
      val (columns, absentColumns) = plan.children.head.output.splitAt(base.dataCols.size)
      val nulls = AttributeMap(absentColumns.map(column => column -> Literal(null, column.dataType)))
      val expressions = plan.expressions.map(_.transform {
        case column: Attribute if nulls.contains(column) => nulls(column)
      })
      val blockTracker =
        new BlockTracker(deltaLog.newDeltaHadoopConf(), outputPath, base, columns, expressions)
      tracker = Some(blockTracker)
      blockTracker
    }
    (chosen.orElse(delta), collection)
  }
}

final private class BlockTracker(
    hadoopConf: Configuration,
    path: Path,
    base: DeltaJobStatisticsTracker,
    columns: Seq[Attribute],
    placement: Seq[Expression]
) extends DeltaJobStatisticsTracker(hadoopConf, path, base.dataCols, base.statsColExpr) {
  @transient var blocks: Map[String, Map[Long, WrittenBlock]] = Map.empty

  override def newTaskInstance(): WriteTaskStatsTracker =
    new BlockTaskTracker(super.newTaskInstance(), UnsafeProjection.create(placement.map(prepareForEval), columns))

  override def processStats(stats: Seq[WriteTaskStats], jobCommitTime: Long): Unit = {
    val blockStatistics = stats.map(_.asInstanceOf[BlockStatistics])
    blocks = blockStatistics.flatMap(_.blocks).toMap
    super.processStats(blockStatistics.map(_.delta), jobCommitTime)
  }
}

final private case class BlockStatistics(delta: WriteTaskStats, blocks: Map[String, Map[Long, WrittenBlock]])
    extends WriteTaskStats

final private class BlockTaskTracker(delta: WriteTaskStatsTracker, place: UnsafeProjection)
    extends WriteTaskStatsTracker {
  private val files = mutable.HashMap[String, mutable.LongMap[WrittenBlock]]()
  private var lastFile = ""
  private var blocks: mutable.LongMap[WrittenBlock] = _

  override def newPartition(values: InternalRow): Unit = delta.newPartition(values)
  override def newFile(path: String): Unit = delta.newFile(path)
  override def closeFile(path: String): Unit = delta.closeFile(path)

  override def newRow(path: String, row: InternalRow): Unit = {
    delta.newRow(path, row)
    if (path != lastFile) {
      blocks = files.getOrElseUpdate(new Path(path).getName, mutable.LongMap.empty)
      lastFile = path
    }
    val placed = place(row)
    blocks.getOrElseUpdate(placed.getLong(0), new WrittenBlock(0, Int.MaxValue, Int.MinValue)).add(placed.getInt(1))
  }

  override def getFinalStats(taskCommitTime: Long): WriteTaskStats =
    BlockStatistics(
      delta.getFinalStats(taskCommitTime),
      files.map { case (name, ofFile) => name -> ofFile.toMap }.toMap
    )
}
