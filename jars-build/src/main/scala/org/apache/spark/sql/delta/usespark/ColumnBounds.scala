package org.apache.spark.sql.delta.usespark

import java.util.{Collections, WeakHashMap}

import scala.util.Try

import io.usespark.IndexedRelation
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, XXH64}
import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, TypeUtils}
import org.apache.spark.sql.delta.{DeltaColumnMapping, Snapshot}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.execution.usespark.OwnQueries
import org.apache.spark.sql.functions.{col, xxhash64}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.collection.OpenHashMap

/** The smallest and the largest value of one column in each file of a version, as Delta's statistics have them. */
final class ColumnBounds private (files: FilePositions, lows: BoundValues, highs: BoundValues, dataType: DataType) {

  /** Whether a file can hold a value for which a test of bounds is true; a file without bounds can. */
  def meets(path: String, test: (Any, Any) => Boolean): Boolean = meets(files(path), test)

  private def meets(position: Int, test: (Any, Any) => Boolean): Boolean =
    position < 0 || !lows.has(position) || !highs.has(position) || test(lows(position), highs(position))

  /** The share of the bytes of some files that one value leaves, on average over values at which files begin. */
  def oneKeyShare(among: Seq[AddFile]): Double = {
    val ordering = TypeUtils.getInterpretedOrdering(dataType).asInstanceOf[Ordering[Any]]
    val positions = among.iterator.map(file => files(file.path)).toArray
    val sizes = among.iterator.map(_.size.toDouble).toArray
    val starts = positions.iterator.filter(n => n >= 0 && lows.has(n)).map(lows(_)).toArray
    val total = sizes.sum
    if (starts.isEmpty || total == 0) 1.0
    else {
      val probes =
        Seq.tabulate(ColumnBounds.Probes)(i => starts((i.toLong * starts.length / ColumnBounds.Probes).toInt))
      val left = probes.map { value =>
        def holds(low: Any, high: Any) = ordering.lteq(low, value) && ordering.lteq(value, high)
        positions.indices.iterator.filter(n => meets(positions(n), holds)).map(sizes(_)).sum
      }
      left.sum / (total * probes.size)
    }
  }
}

/**
 * Where the files of a version are in the arrays of bounds, by a hash of their path: 24 bytes a file. Files whose hashes
 * are equal have no position.
 */
final private class FilePositions(hashes: Array[Long]) {
  private val positions = new OpenHashMap[Long, Int](hashes.length.max(1))
  for (position <- hashes.indices) positions.changeValue(hashes(position), position, _ => -1)

  /** The position; negative for a file that has none. */
  def apply(path: String): Int = {
    val hash = FilePositions.hash(path)
    if (positions.contains(hash)) positions(hash) else -1
  }
}

private object FilePositions {
  private val Seed = 42L // of Spark's xxhash64

  def hash(path: String): Long = XXH64.hashUTF8String(UTF8String.fromString(path), Seed)
}

private object BoundValues {
  def isWhole(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  private val Replacement = UTF8String.fromString("\uFFFD")

  /** Whether the log has U+FFFD in a bound, as it has for bytes that are not UTF-8, which have another order. */
  def isReplaced(bound: Any): Boolean = bound match {
    case text: UTF8String => text.contains(Replacement)
    case _ => false
  }

  /** Of one bound of one file, about: Delta cuts texts to 32 characters. */
  def bytesOf(dataType: DataType): Long = if (isWhole(dataType)) 8 else 88
}

/** One bound of each file: 8 bytes for whole numbers and times, else an object each. */
final private class BoundValues(size: Int, dataType: DataType) {
  private val isWhole = BoundValues.isWhole(dataType)
  private val known = new java.util.BitSet(size)
  private val numbers = new Array[Long](if (isWhole) size else 0)
  private val objects = new Array[Any](if (isWhole) 0 else size)

  def has(position: Int): Boolean = known.get(position)

  def apply(position: Int): Any =
    if (!isWhole) objects(position)
    else
      dataType match {
        case ByteType => numbers(position).toByte
        case ShortType => numbers(position).toShort
        case IntegerType | DateType => numbers(position).toInt
        case _ => numbers(position)
      }

  /** Keeps the bound of a row, unless it has none or one of a string that may have been invalid UTF-8. */
  def put(position: Int, row: InternalRow, column: Int): Unit = if (!row.isNullAt(column)) {
    val value = row.get(column, dataType)
    known.set(position, !BoundValues.isReplaced(value))
    value match {
      case text: UTF8String => objects(position) = text.clone()
      case number: Number if isWhole => numbers(position) = number.longValue
      case other => objects(position) = other
    }
  }
}

/**
 * Bounds of columns, which are read in one job and kept for as long as Delta keeps the version, so only the first query of
 * a version pays. Those of a version fill at most MaxBytes.
 */
object ColumnBounds {
  private val Probes = 16
  private val MaxBytes = 256L << 20
  private val BytesOfPosition = 24L

  /** The columns of a version that were asked for, and the bytes that they fill; None for one without bounds. */
  final private case class Kept(bytes: Long, columns: Map[Seq[String], Option[ColumnBounds]])
  private val kept = Collections.synchronizedMap(new WeakHashMap[Snapshot, Kept]())

  private val TypeChanges = "delta.typeChanges"

  /**
   * The physical names of a column and of the structs around it, from the outermost; None if the values that queries read
   * may lie outside of its statistics.
   */
  def path(column: Expression, schema: StructType): Option[Seq[String]] =
    IndexedRelation
      .fieldPath(column, schema)
      .filterNot(_.exists(field => isPadded(field) || wasFloat(field)))
      .map(_.map(DeltaColumnMapping.getPhysicalName))

  /** Whether Spark pads values when it reads them. */
  private def isPadded(field: StructField): Boolean =
    CharVarcharUtils.getRawType(field.metadata).exists(_.existsRecursively(_.isInstanceOf[CharType]))

  /** Whether the log may have values with the digits of a FLOAT, which are those of another DOUBLE. */
  private def wasFloat(field: StructField): Boolean = field.metadata.contains(TypeChanges) &&
    field.metadata.getMetadataArray(TypeChanges).exists(_.getString("fromType") == FloatType.typeName)

  /**
   * The bounds of a column.
   *
   * @param column the physical names of the column and of the structs around it, from the outermost.
   * @param others columns that the same job reads, if one is started.
   * @param mayRead whether a job may read them, if no query has read them before.
   * @return None if they are not kept and may not be read, if Delta collects none of this column, or if they are too many.
   */
  def of(
      snapshot: Snapshot,
      column: Seq[String],
      others: Seq[Seq[String]],
      mayRead: Boolean
  ): Option[ColumnBounds] = {
    val before = kept.getOrDefault(snapshot, Kept(0, Map.empty))
    if (before.columns.contains(column) || !mayRead) before.columns.get(column).flatten
    else {
      val added = read(snapshot, (column +: others).distinct.filterNot(before.columns.contains), before.bytes)
      kept.merge(snapshot, added, (old, more) => Kept(old.bytes + more.bytes, old.columns ++ more.columns))
      added.columns.get(column).flatten
    }
  }

  /** Reads columns in one job; those that would fill more than what is left are as if they had no statistics. */
  private def read(snapshot: Snapshot, columns: Seq[Seq[String]], filled: Long): Kept = {
    val (stats, count) = (snapshot.withStats, snapshot.numOfFiles)
    def named(kind: String, column: Seq[String]) =
      col((Seq("stats", kind) ++ column).map(name => s"`${name.replace("`", "``")}`").mkString("."))
    // A column without statistics has no field.
    val typed = columns.flatMap { column =>
      Try(stats.select(named("minValues", column), named("maxValues", column)).schema.head.dataType).toOption
        .map(column -> _)
    }
    val sums =
      typed.scanLeft(count * BytesOfPosition)((sum, column) => sum + count * BoundValues.bytesOf(column._2) * 2)
    val fitting = typed.zip(sums.tail).takeWhile(filled + _._2 <= MaxBytes).map(_._1)
    val none = columns.map(_ -> None).toMap[Seq[String], Option[ColumnBounds]]
    if (fitting.isEmpty) Kept(0, none)
    else {
      val values = fitting.zipWithIndex.flatMap { case ((column, _), i) =>
        Seq(named("minValues", column).as(s"low$i"), named("maxValues", column).as(s"high$i"))
      }
      val bounds = OwnQueries.described(
        stats.sparkSession.sparkContext,
        s"USE statistics of ${fitting.map(_._1.mkString(".")).mkString(", ")}"
      ) {
        collected(stats.select(xxhash64(col("path")).as("hash") +: values: _*), fitting.map(_._2))
      }
      Kept(sums(fitting.size), none ++ fitting.map(_._1).zip(bounds.map(Some(_))))
    }
  }

  private def collected(rows: DataFrame, types: Seq[DataType]): Seq[ColumnBounds] = {
    val (count, found) = rows.queryExecution.executedPlan.executeCollectIterator()
    val hashes = new Array[Long](count.toInt)
    val bounds = types.map(new BoundValues(hashes.length, _)).zip(types.map(new BoundValues(hashes.length, _)))
    val inOrder = bounds.flatMap { case (lows, highs) => Seq(lows, highs) }.zipWithIndex
    for ((row, position) <- found.zipWithIndex) {
      hashes(position) = row.getLong(0)
      inOrder.foreach { case (bound, i) => bound.put(position, row, 1 + i) }
    }
    val files = new FilePositions(hashes)
    types.zip(bounds).map { case (dataType, (lows, highs)) =>
      new ColumnBounds(files, lows, highs, dataType)
    }
  }
}
