package org.apache.spark.sql.usespark

import java.nio.ByteBuffer
import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.classic.ExpressionUtils.{column, expression}
import org.apache.spark.sql.types._

/** Where a row lies in the order of a rewrite, and its file; the tables come from Python, which made them of a sample. */
object CurveExpressions {

  /** The code of a DOUBLE: its place among the column's quantiles, from 0; that of null is 0. */
  def rankOfDouble(value: Column, table: Array[Byte]): Column =
    column(RankCode(expression(value), DoubleRanks.unpack(table)))

  /** The code of a BINARY, likewise. */
  def rankOfBinary(value: Column, table: Array[Byte]): Column =
    column(RankCode(expression(value), BinaryRanks.unpack(table)))

  /** The place of a point on the Hilbert curve; `codes` are INT columns of `bits` bits each. */
  def hilbertKey(codes: ju.List[Column], bits: Int): Column =
    column(HilbertKey(codes.asScala.map(expression).toSeq, bits))

  /** The file of a row by weight (INT), place on the curve (BIGINT) and a number that spreads equal rows (BIGINT). */
  def file(weight: Column, key: Column, spread: Column, packing: Array[Byte]): Column = column(
    FileOf(expression(weight), expression(key), expression(spread), PackedFiles.unpack(ByteBuffer.wrap(packing)))
  )
}

/** Codes of values by the sorted boundaries between them. */
sealed trait Ranks extends Serializable

final class DoubleRanks(boundaries: Array[Double], codes: Array[Int]) extends Ranks {
  def codeOf(value: Double): Int = {
    // Adding zero makes the negative zero the positive one.
    val at = ju.Arrays.binarySearch(boundaries, value + 0.0)
    codes(if (at >= 0) at + 1 else -at - 1)
  }
  override def toString: String = s"${boundaries.length} quantiles"
}

object DoubleRanks {
  def unpack(bytes: Array[Byte]): DoubleRanks = {
    val in = ByteBuffer.wrap(bytes)
    val size = in.getInt()
    new DoubleRanks(Array.fill(size)(in.getDouble()), Array.fill(size + 1)(in.getInt()))
  }
}

final class BinaryRanks(boundaries: Array[Array[Byte]], codes: Array[Int]) extends Ranks {
  def codeOf(value: Array[Byte]): Int = {
    var low = 0
    var high = boundaries.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (ju.Arrays.compareUnsigned(boundaries(middle), value) <= 0) low = middle + 1 else high = middle
    }
    codes(low)
  }
  override def toString: String = s"${boundaries.length} quantiles"
}

object BinaryRanks {
  def unpack(bytes: Array[Byte]): BinaryRanks = {
    val in = ByteBuffer.wrap(bytes)
    val boundaries = Array.fill(in.getInt()) {
      val boundary = new Array[Byte](in.getInt())
      in.get(boundary)
      boundary
    }
    new BinaryRanks(boundaries, Array.fill(boundaries.length + 1)(in.getInt()))
  }
}

case class RankCode(child: Expression, ranks: Ranks) extends UnaryExpression {
  override def dataType: DataType = IntegerType
  override def nullable: Boolean = false
  override def eval(input: InternalRow): Any = (child.eval(input), ranks) match {
    case (null, _) => 0
    case (value: Double, table: DoubleRanks) => table.codeOf(value)
    case (value: Array[Byte], table: BinaryRanks) => table.codeOf(value)
    case (other, _) => throw new IllegalStateException(s"no rank for a ${other.getClass}")
  }
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val table = ctx.addReferenceObj("ranks", ranks, ranks.getClass.getName)
    val value = child.genCode(ctx)
    ev.copy(
      code = code"""
        ${value.code}
        int ${ev.value} = ${value.isNull} ? 0 : $table.codeOf(${value.value});""",
      isNull = FalseLiteral
    )
  }
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

/** The index along the Hilbert curve, by John Skilling's transform ("Programming the Hilbert curve", 2004). */
object Hilbert {
  def key(point: Array[Int], bits: Int): Long = {
    val dimensions = point.length
    val top = 1 << (bits - 1)
    var q = top
    while (q > 1) {
      val lower = q - 1
      var i = 0
      while (i < dimensions) {
        if ((point(i) & q) != 0) point(0) ^= lower
        else {
          val swapped = (point(0) ^ point(i)) & lower
          point(0) ^= swapped
          point(i) ^= swapped
        }
        i += 1
      }
      q >>= 1
    }
    var i = 1
    while (i < dimensions) {
      point(i) ^= point(i - 1)
      i += 1
    }
    var flips = 0
    q = top
    while (q > 1) {
      if ((point(dimensions - 1) & q) != 0) flips ^= q - 1
      q >>= 1
    }
    var key = 0L
    var bit = bits - 1
    while (bit >= 0) {
      i = 0
      while (i < dimensions) {
        key = (key << 1) | (((point(i) ^ flips) >> bit) & 1)
        i += 1
      }
      bit -= 1
    }
    key
  }
}

case class HilbertKey(codes: Seq[Expression], bits: Int) extends Expression {
  override def children: Seq[Expression] = codes
  override def dataType: DataType = LongType
  override def nullable: Boolean = false
  override def eval(input: InternalRow): Any = Hilbert.key(codes.map(_.eval(input).asInstanceOf[Int]).toArray, bits)
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val point = ctx.addMutableState("int[]", "codes", v => s"$v = new int[${codes.length}];")
    val values = codes.map(_.genCode(ctx))
    val fill = values.zipWithIndex.map { case (value, i) => s"$point[$i] = ${value.value};" }
    ev.copy(
      code = code"""
        ${values.map(_.code).reduce(_ + _)}
        ${fill.mkString("\n")}
        long ${ev.value} = org.apache.spark.sql.usespark.Hilbert.key($point, $bits);""",
      isNull = FalseLiteral
    )
  }
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Expression =
    copy(codes = newChildren)
}

/**
 * Files by weight band, and by run of the curve within each.
 *
 * Band b starts at `firstWeights(b)` and has the runs from `firstRuns(b)` up to the next band's. Run r starts at
 * `firstKeys(r)` and has `widths(r)` files from `firstFiles(r)` on, among which rows are spread.
 */
final class PackedFiles(
    firstWeights: Array[Int],
    firstRuns: Array[Int],
    firstKeys: Array[Long],
    firstFiles: Array[Int],
    widths: Array[Int]
) extends Serializable {
  def fileOf(weight: Int, key: Long, spread: Long): Int = {
    val position = ju.Arrays.binarySearch(firstWeights, weight)
    val band = if (position >= 0) position else math.max(-position - 2, 0)
    val end = if (band + 1 < firstRuns.length) firstRuns(band + 1) else firstKeys.length
    val at = ju.Arrays.binarySearch(firstKeys, firstRuns(band), end, key)
    val run = if (at >= 0) at else math.max(-at - 2, firstRuns(band))
    if (widths(run) == 1) firstFiles(run) else firstFiles(run) + java.lang.Math.floorMod(spread, widths(run))
  }
  override def toString: String = s"${firstWeights.length} bands, ${firstKeys.length} runs"
}

object PackedFiles {
  def unpack(in: ByteBuffer): PackedFiles = {
    val bands = in.getInt()
    val runs = in.getInt()
    new PackedFiles(
      Array.fill(bands)(in.getInt()),
      Array.fill(bands)(in.getInt()),
      Array.fill(runs)(in.getLong()),
      Array.fill(runs)(in.getInt()),
      Array.fill(runs)(in.getInt())
    )
  }
}

case class FileOf(weight: Expression, key: Expression, spread: Expression, files: PackedFiles) extends Expression {
  override def children: Seq[Expression] = Seq(weight, key, spread)
  override def dataType: DataType = IntegerType
  override def nullable: Boolean = false
  override def eval(input: InternalRow): Any = files.fileOf(
    weight.eval(input).asInstanceOf[Int],
    key.eval(input).asInstanceOf[Long],
    spread.eval(input).asInstanceOf[Long]
  )
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val table = ctx.addReferenceObj("files", files, classOf[PackedFiles].getName)
    val (w, k, s) = (weight.genCode(ctx), key.genCode(ctx), spread.genCode(ctx))
    ev.copy(
      code = code"""
        ${w.code}
        ${k.code}
        ${s.code}
        int ${ev.value} = $table.fileOf(${w.value}, ${k.value}, ${s.value});""",
      isNull = FalseLiteral
    )
  }
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Expression =
    copy(weight = newChildren(0), key = newChildren(1), spread = newChildren(2))
}
