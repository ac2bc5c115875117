package org.apache.spark.sql.usespark

import java.nio.ByteBuffer
import java.{util => ju}

import scala.jdk.CollectionConverters._
import scala.util.hashing.MurmurHash3

import io.usespark.BlockReader
import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.classic.ExpressionUtils.{column, expression}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The row-level part of the index as columns; the tables they look into are made by Python. */
object IndexExpressions {

  /** Coordinate of a string under hashing, in [0, 1]; null in, null out. */
  def hashCoordinate(text: Column): Column = column(HashCoordinate(expression(text)))

  /** The cell of a point: `depth` levels of one bit per dimension, first level highest, as a long. */
  def cell(coordinates: ju.List[Column], depth: Int): Column =
    column(PointLookup(coordinates.asScala.map(expression).toSeq, None, new CellLookup(coordinates.size, depth)))

  /** The ordinal of the cube that a row of this weight lies in; `tree` as packed by Python. */
  def cube(coordinates: ju.List[Column], weight: Column, tree: Array[Byte]): Column = column(
    PointLookup(
      coordinates.asScala.map(expression).toSeq,
      Some(expression(weight)),
      CubeLookup.unpack(coordinates.size, ByteBuffer.wrap(tree))
    )
  )

  /** The blocks of a file's tag in a space of so many dimensions; null where the tag cannot be read. */
  def blocks(tag: Column, dimensions: Column): Column = column(
    StaticInvoke(
      BlockReader.getClass,
      Blocks,
      "rows",
      Seq(expression(tag), expression(dimensions)),
      Seq(StringType, IntegerType)
    )
  )

  private val Blocks = ArrayType(
    new StructType()
      .add("cubeId", StringType)
      .add("minWeight", IntegerType)
      .add("maxWeight", IntegerType)
      .add("elementCount", LongType)
  )
}

/** (MurmurHash3 of the UTF-8 bytes, sign bit cleared) / (2^31 - 1), as the index format defines it. */
case class HashCoordinate(child: Expression) extends UnaryExpression {
  override def dataType: DataType = DoubleType
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(value: Any): Any = HashCoordinate.of(value.asInstanceOf[UTF8String])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    defineCodeGen(ctx, ev, value => s"org.apache.spark.sql.usespark.HashCoordinate.of($value)")
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

object HashCoordinate {
  def of(text: UTF8String): Double = (MurmurHash3.bytesHash(text.getBytes) & 0x7fffffff) / 2147483647.0
}

/** Something that places a point with coordinates in [0, 1] and a weight. */
trait Lookup extends Serializable {
  def find(point: Array[Double], weight: Int): Long
}

/** Repeatedly doubles each coordinate: the bits that fall out are the levels' codes, first dimension highest. */
final class CellLookup(dimensions: Int, depth: Int) extends Lookup {
  override def find(point: Array[Double], weight: Int): Long = {
    var cell = 0L
    var level = 0
    while (level < depth) {
      cell = (cell << dimensions) | Level.next(point)
      level += 1
    }
    cell
  }
  override def toString: String = s"cells of depth $depth"
}

object Level {

  /** The code of the next level; `point` becomes the point inside that child. Coordinate 1.0 stays in the last one. */
  def next(point: Array[Double]): Long = {
    var code = 0L
    var d = 0
    while (d < point.length) {
      val doubled = point(d) * 2
      if (doubled >= 1) {
        code = (code << 1) | 1
        point(d) = doubled - 1
      } else {
        code <<= 1
        point(d) = doubled
      }
      d += 1
    }
    code
  }
}

/** Inner cubes by ordinal: their weight thresholds, and their inner children by (parent ordinal, code). */
final class CubeLookup(dimensions: Int, thresholds: Array[Int], childKeys: Array[Long], childNodes: Array[Int])
    extends Lookup {
  override def find(point: Array[Double], weight: Int): Long = {
    if (thresholds.isEmpty) return 0L
    var node = 0
    while (true) {
      if (weight <= thresholds(node)) return node
      val key = (node.toLong << dimensions) | Level.next(point)
      val at = ju.Arrays.binarySearch(childKeys, key)
      if (at < 0) return thresholds.length + key
      node = childNodes(at)
    }
    throw new IllegalStateException("unreachable")
  }
  override def toString: String = s"tree of ${thresholds.length} inner cubes"
}

object CubeLookup {
  def unpack(dimensions: Int, bytes: ByteBuffer): CubeLookup = {
    val thresholds = Array.fill(bytes.getInt())(bytes.getInt())
    val children = bytes.getInt()
    new CubeLookup(dimensions, thresholds, Array.fill(children)(bytes.getLong()), Array.fill(children)(bytes.getInt()))
  }
}

/** Evaluates coordinates (and a weight) and hands them to a lookup; no input is ever null. */
case class PointLookup(coordinates: Seq[Expression], weight: Option[Expression], lookup: Lookup) extends Expression {
  override def children: Seq[Expression] = coordinates ++ weight
  override def dataType: DataType = LongType
  override def nullable: Boolean = false

  override def eval(input: InternalRow): Any = {
    val point = coordinates.map(_.eval(input).asInstanceOf[Double]).toArray
    lookup.find(point, weight.map(_.eval(input).asInstanceOf[Int]).getOrElse(0))
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val place = ctx.addReferenceObj("lookup", lookup, classOf[Lookup].getName)
    val point = ctx.addMutableState("double[]", "point", v => s"$v = new double[${coordinates.length}];")
    val codes = children.map(_.genCode(ctx))
    val fill = codes.take(coordinates.length).zipWithIndex.map { case (c, i) => s"$point[$i] = ${c.value};" }
    val rowWeight = if (weight.isDefined) codes.last.value.toString else "0"
    ev.copy(
      code = code"""
        ${codes.map(_.code).reduce(_ + _)}
        ${fill.mkString("\n")}
        long ${ev.value} = $place.find($point, $rowWeight);""",
      isNull = FalseLiteral
    )
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Expression =
    copy(coordinates = newChildren.take(coordinates.length), weight = newChildren.drop(coordinates.length).headOption)
}
