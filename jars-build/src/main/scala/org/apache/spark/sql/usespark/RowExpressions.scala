package org.apache.spark.sql.usespark

import java.nio.ByteBuffer
import java.{util => ju}

import scala.jdk.CollectionConverters._
import scala.util.hashing.MurmurHash3

import io.usespark.BlockReader
import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.classic.ExpressionUtils.{column, expression}
import org.apache.spark.sql.functions.{coalesce, greatest, least, lit}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * What the JVM computes for each row, as columns; null in, null out. Python decides which of them a row needs, and packs
 * the tables that they look into.
 */
object RowExpressions {

  /** Booleans as 0 and 1, times as epoch milliseconds, decimals as doubles; everything else as it is. */
  def indexValue(value: Column): Column = column(IndexValue(expression(value)))

  /** A number as Java's `toString` writes it, whatever the session's settings. */
  def javaText(number: Column): Column = {
    val text = StaticInvoke(classOf[String], ObjectType(classOf[String]), "valueOf", Seq(expression(number)))
    column(StaticInvoke(classOf[UTF8String], StringType, "fromString", Seq(text)))
  }

  /** Coordinate of a string under hashing, in [0, 1]. */
  def hashCoordinate(text: Column): Column =
    column(StaticInvoke(HashCoordinate.getClass, DoubleType, "of", Seq(expression(text))))

  /** Coordinate of a number in the range that begins at `low`, by the inverse of its length; NaN sorts above 1. */
  def linear(value: Column, low: Double, scale: Double, ofNull: Double): Column = {
    val scaled = (value.cast(DoubleType) - lit(low)) * lit(scale)
    greatest(least(coalesce(scaled, lit(ofNull)), lit(1.0)), lit(0.0))
  }

  /** Coordinate of a double among quantiles, packed by Python as a count and the doubles. */
  def numericQuantiles(value: Column, quantiles: Array[Byte]): Column =
    call(new NumericQuantiles(ByteBuffer.wrap(quantiles)), "place", DoubleType, expression(value))

  /** The code of a DOUBLE, by its place among boundaries. */
  def rankOfDouble(value: Column, table: Array[Byte]): Column =
    call(new DoubleRanks(ByteBuffer.wrap(table)), "codeOf", IntegerType, expression(value))

  /** The code of a BINARY, likewise. */
  def rankOfBinary(value: Column, table: Array[Byte]): Column =
    call(new BinaryRanks(ByteBuffer.wrap(table)), "codeOf", IntegerType, expression(value))

  /** The cell of a point: `depth` levels of one bit per dimension, first level highest, as a long. */
  def cell(coordinates: ju.List[Column], depth: Int): Column =
    column(StaticInvoke(Level.getClass, LongType, "cell", Seq(array(coordinates), Literal(depth))))

  /** The ordinal of the cube that a row of this weight lies in; `tree` as packed by Python. */
  def cube(coordinates: ju.List[Column], weight: Column, tree: Array[Byte]): Column = {
    val lookup = new CubeLookup(coordinates.size, ByteBuffer.wrap(tree))
    call(lookup, "find", LongType, array(coordinates), expression(weight))
  }

  /** The place of a point on the Hilbert curve; `codes` are INT columns of `bits` bits each. */
  def hilbertKey(codes: ju.List[Column], bits: Int): Column =
    column(StaticInvoke(Hilbert.getClass, LongType, "key", Seq(array(codes), Literal(bits))))

  /** The file of a row by weight (INT), place on the curve (BIGINT) and a number that spreads equal rows (BIGINT). */
  def file(weight: Column, key: Column, spread: Column, packing: Array[Byte]): Column = {
    val files = new PackedFiles(ByteBuffer.wrap(packing))
    call(files, "fileOf", IntegerType, expression(weight), expression(key), expression(spread))
  }

  /** The blocks of a file's tag in a space of so many dimensions; null where the tag cannot be read. */
  def blocks(tag: Column, dimensions: Column): Column =
    column(StaticInvoke(BlockReader.getClass, Blocks, "rows", Seq(expression(tag), expression(dimensions))))

  private val Blocks = ArrayType(
    new StructType()
      .add("cubeId", StringType)
      .add("minWeight", IntegerType)
      .add("maxWeight", IntegerType)
      .add("elementCount", LongType)
  )

  private def call(table: Serializable, method: String, returns: DataType, arguments: Expression*): Column =
    column(Invoke(Literal(table, ObjectType(table.getClass)), method, returns, arguments))

  private def array(columns: ju.List[Column]): Expression = CreateArray(columns.asScala.map(expression).toSeq)
}

case class IndexValue(child: Expression) extends UnaryExpression with RuntimeReplaceable {
  override def replacement: Expression = child.dataType match {
    case BooleanType => Cast(child, LongType)
    // Times without a zone are those of UTC.
    case time @ (TimestampType | TimestampNTZType) =>
      UnixMillis(PreciseTimestampConversion(child, time, TimestampType))
    case DateType => Multiply(Cast(UnixDate(child), LongType), Literal(IndexValue.MillisPerDay))
    case _: DecimalType => Cast(child, DoubleType)
    case _ => child
  }
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

object IndexValue {
  private val MillisPerDay = 86400000L
}

/** (MurmurHash3 of the UTF-8 bytes, sign bit cleared) / (2^31 - 1), as the index format defines it. */
object HashCoordinate {
  def of(text: UTF8String): Double = (MurmurHash3.bytesHash(text.getBytes) & 0x7fffffff) / 2147483647.0
}
