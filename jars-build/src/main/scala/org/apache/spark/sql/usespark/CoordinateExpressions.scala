package org.apache.spark.sql.usespark

import java.nio.ByteBuffer

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.classic.ExpressionUtils.{column, expression}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** From column values to coordinates; null in, null out. Which transformation a column has is decided by Python. */
object CoordinateExpressions {

  /** Booleans as 0 and 1, times as epoch milliseconds, decimals as doubles; everything else as it is. */
  def indexValue(value: Column): Column = column(IndexValue(expression(value)))

  /** A number as Java's `toString` writes it, whatever the session's settings. */
  def javaText(number: Column): Column = column(JavaText(expression(number)))

  /** Coordinate of a double among quantiles, packed by Python as a count and the doubles. */
  def numericQuantiles(value: Column, quantiles: Array[Byte]): Column =
    column(QuantileCoordinate(expression(value), NumericQuantiles.unpack(ByteBuffer.wrap(quantiles))))

  /** Coordinate of a string among quantiles, packed by Python as a count and, for each, its length and UTF-8 bytes. */
  def stringQuantiles(value: Column, quantiles: Array[Byte]): Column =
    column(QuantileCoordinate(expression(value), StringQuantiles.unpack(ByteBuffer.wrap(quantiles))))
}

case class IndexValue(child: Expression) extends UnaryExpression {
  override def dataType: DataType = child.dataType match {
    case BooleanType | TimestampType | TimestampNTZType | DateType => LongType
    case _: DecimalType => DoubleType
    case other => other
  }
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(value: Any): Any = child.dataType match {
    case BooleanType => if (value.asInstanceOf[Boolean]) 1L else 0L
    case TimestampType | TimestampNTZType => IndexValue.milliseconds(value.asInstanceOf[Long])
    case DateType => IndexValue.midnight(value.asInstanceOf[Int])
    case _: DecimalType => value.asInstanceOf[Decimal].toDouble
    case _ => value
  }
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val here = "org.apache.spark.sql.usespark.IndexValue"
    defineCodeGen(
      ctx,
      ev,
      value =>
        child.dataType match {
          case BooleanType => s"($value ? 1L : 0L)"
          case TimestampType | TimestampNTZType => s"$here.milliseconds($value)"
          case DateType => s"$here.midnight($value)"
          case _: DecimalType => s"$value.toDouble()"
          case _ => value
        }
    )
  }
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

object IndexValue {
  private val MillisPerDay = 86400000L
  def milliseconds(microseconds: Long): Long = Math.floorDiv(microseconds, 1000L)
  def midnight(day: Int): Long = day * MillisPerDay
}

case class JavaText(child: Expression) extends UnaryExpression {
  override def dataType: DataType = StringType
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(value: Any): Any = UTF8String.fromString(value.toString)
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    defineCodeGen(ctx, ev, value => s"UTF8String.fromString(String.valueOf($value))")
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

/** Ascending quantiles, and the place in [0, 1] of a value among them. */
trait Quantiles extends Serializable {
  def place(value: Any): Double
}

final class NumericQuantiles(quantiles: Array[Double]) extends Quantiles {
  private val steps = quantiles.length - 1

  override def place(value: Any): Double = find(value.asInstanceOf[Double])

  /** A hit at i is i / steps, what lies between neighbours is linear, and NaN comes after all others. */
  private def find(value: Double): Double = {
    var low = 0
    var high = steps
    while (low <= high) {
      val middle = (low + high) >>> 1
      if (quantiles(middle) == value) return middle.toDouble / steps
      if (quantiles(middle) > value) high = middle - 1 else low = middle + 1
    }
    if (low == 0) 0.0
    else if (low > steps) 1.0
    else (low - 1 + (value - quantiles(low - 1)) / (quantiles(low) - quantiles(low - 1))) / steps
  }
  override def toString: String = s"${quantiles.length} quantiles"
}

object NumericQuantiles {
  def unpack(bytes: ByteBuffer): NumericQuantiles =
    new NumericQuantiles(Array.fill(bytes.getInt())(bytes.getDouble()))
}

final class StringQuantiles(quantiles: Array[UTF8String]) extends Quantiles {
  private val steps = quantiles.length - 1

  override def place(value: Any): Double = find(value.asInstanceOf[UTF8String])

  /** The place of the quantile at or before the string. */
  private def find(value: UTF8String): Double = {
    var low = 0
    var high = steps
    while (low <= high) {
      val middle = (low + high) >>> 1
      val order = quantiles(middle).binaryCompare(value)
      if (order == 0) return middle.toDouble / steps
      if (order > 0) high = middle - 1 else low = middle + 1
    }
    if (low > steps) 1.0 else math.max(low - 1, 0).toDouble / steps
  }
  override def toString: String = s"${quantiles.length} quantiles"
}

object StringQuantiles {
  def unpack(bytes: ByteBuffer): StringQuantiles =
    new StringQuantiles(Array.fill(bytes.getInt()) {
      val text = new Array[Byte](bytes.getInt())
      bytes.get(text)
      UTF8String.fromBytes(text)
    })
}

case class QuantileCoordinate(child: Expression, quantiles: Quantiles) extends UnaryExpression {
  override def dataType: DataType = DoubleType
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(value: Any): Any = quantiles.place(value)
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val among = ctx.addReferenceObj("quantiles", quantiles, classOf[Quantiles].getName)
    defineCodeGen(ctx, ev, value => s"$among.place($value)")
  }
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}
