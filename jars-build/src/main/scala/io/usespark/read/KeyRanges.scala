package io.usespark

import java.math.{BigDecimal => JavaDecimal, BigInteger}
import java.math.RoundingMode.{CEILING, FLOOR}
import java.util.Objects

import scala.collection.mutable
import scala.util.{Left, Right}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Closed ranges that together contain all keys of a join, in order. Without ranges, there is no key. */
final case class KeyRanges(dataType: DataType, keys: Int, ranges: Seq[(Any, Any)]) {

  /** The condition that a row meets if its value can be a key. */
  def condition(value: Expression): Expression = {
    val alternatives: Seq[Expression] = ranges.map {
      case (low, high) if Objects.equals(low, high) => EqualTo(value, Literal(low, dataType))
      case (low, high) =>
        And(GreaterThanOrEqual(value, Literal(low, dataType)), LessThanOrEqual(value, Literal(high, dataType)))
    }
    KeyRanges.anyOf(alternatives)
  }

  /**
   * The same for the statistics of a file, which are less exact than its rows: instants in milliseconds, some with zone
   * offsets in minutes, and decimals that some writers compute as doubles.
   */
  def ofStatistics(column: DataType): KeyRanges = (column, dataType) match {
    case (_, TimestampType | TimestampNTZType) => widened
    case (decimal: DecimalType, _) if decimal.precision > KeyRanges.DigitsOfDoubles => widened
    case _ => this
  }

  /**
   * Ranges between strings of ASCII that hold these, for comparisons with statistics in which U+FFFD replaces invalid bytes:
   * the replacement keeps the order to such strings, and not to others.
   *
   * @return None if they would have no upper end.
   */
  def withAsciiEnds: Option[KeyRanges] =
    if (dataType != StringType) Some(this)
    else {
      val ends = ranges.map { case (low, high) =>
        KeyRanges.asciiStart(low.asInstanceOf[UTF8String]) -> KeyRanges.asciiAbove(high.asInstanceOf[UTF8String])
      }
      Option.unless(ends.exists(_._2.isEmpty))(copy(ranges = ends.map { case (low, high) => low -> high.get }))
    }

  private def widened: KeyRanges = copy(ranges = ranges.map { case (low, high) =>
    KeyRanges.moved(low, dataType, -1) -> KeyRanges.moved(high, dataType, 1)
  })

  /** Whether a value between two bounds can be a key. */
  def meets(low: Any, high: Any): Boolean = {
    var (from, until) = (0, lows.length)
    while (from < until) {
      val middle = (from + until) / 2
      if (ordering.lt(highs(middle), low)) from = middle + 1 else until = middle
    }
    from < lows.length && ordering.lteq(lows(from), high)
  }

  private val ordering = TypeUtils.getInterpretedOrdering(dataType)
  private val (lows, highs) = (ranges.map(_._1).toArray[Any], ranges.map(_._2).toArray[Any])
}

object KeyRanges {
  private val ErrorOfInstants = 60L * 1000 * 1000

  private val LastCodePoint = UTF8String.fromString("\uDBFF\uDFFF")

  /** Decimals with more digits change when they become doubles. */
  private val DigitsOfDoubles = 15
  private val ErrorOfDoubles = new JavaDecimal("1e-15")
  // Some writers have no bounds beyond those of LONG.
  private val LeastBound = new JavaDecimal(Long.MinValue)
  private val GreatestBound = new JavaDecimal(Long.MaxValue)

  /** Whether ranges of a type can be made: its order is that of the statistics and of the index. */
  def supports(dataType: DataType): Boolean = dataType match {
    case StringType | _: DecimalType | FloatType | DoubleType | TimestampType | TimestampNTZType => true
    case other => isWhole(other)
  }

  /**
   * The ranges of some keys, cut where the gaps between neighbours are the largest.
   *
   * @param most number of ranges.
   * @return the code of a reason if a key is in no range that statistics can be compared with.
   */
  def of(keys: Array[Any], dataType: DataType, most: Int): Either[String, KeyRanges] =
    if (keys.exists(isNaN)) Left("NAN_KEY")
    else if (keys.exists(isInvalid)) Left("INVALID_STRING_KEY")
    else {
      val ordering = TypeUtils.getInterpretedOrdering(dataType).asInstanceOf[Ordering[Any]]
      val sorted = keys.sorted(ordering)
      val gaps = gapsOf(sorted, dataType)
      val widest = mutable.PriorityQueue.empty[(Double, Int)](Ordering.by[(Double, Int), Double](-_._1))
      for (i <- gaps.indices if gaps(i) > 0) {
        widest.enqueue(gaps(i) -> i)
        if (widest.size >= most) widest.dequeue()
      }
      val ends = if (sorted.isEmpty) Nil else widest.map(_._2).toSeq.sorted :+ (sorted.length - 1)
      val starts = 0 +: ends.map(_ + 1)
      val ranges = starts.zip(ends).map { case (i, j) => withZero(sorted(i), -0.0) -> withZero(sorted(j), 0.0) }
      Right(KeyRanges(dataType, sorted.length, ranges))
    }

  /** The end of a range, down or up by as much as a bound can differ from its value. */
  private def moved(end: Any, dataType: DataType, sign: Int): Any = (end, dataType) match {
    case (instant: Long, TimestampType | TimestampNTZType) =>
      if (sign < 0) math.max(instant, Long.MinValue + ErrorOfInstants) - ErrorOfInstants
      else math.min(instant, Long.MaxValue - ErrorOfInstants) + ErrorOfInstants
    case (number: Decimal, of: DecimalType) =>
      val value = number.toJavaBigDecimal
      val limit = if (sign < 0) value.min(GreatestBound) else value.max(LeastBound)
      val error = limit.abs.multiply(ErrorOfDoubles)
      val far = if (sign < 0) limit.subtract(error) else limit.add(error)
      val most = new JavaDecimal(BigInteger.TEN.pow(of.precision).subtract(BigInteger.ONE), of.scale)
      val end = far.setScale(of.scale, if (sign < 0) FLOOR else CEILING).max(most.negate).min(most)
      Decimal(end, of.precision, of.scale)
    case (number: Double, _) =>
      val limit = if (sign < 0) math.min(number, Long.MaxValue.toDouble) else math.max(number, Long.MinValue.toDouble)
      limit + sign * math.abs(limit) * ErrorOfDoubles.doubleValue
    case (number: Float, _) =>
      if (sign < 0) math.nextDown(math.min(number, Long.MaxValue.toFloat))
      else math.nextUp(math.max(number, Long.MinValue.toFloat))
    case _ => end
  }

  /** The end of a range; one at zero with the sign that includes both zeros. Dictionaries of Parquet differ between them. */
  private def withZero(end: Any, zero: Double): Any = end match {
    case number: Double if number == 0 => zero
    case number: Float if number == 0 => zero.toFloat
    case _ => end
  }

  /** The space after each key but the last in which no other value of the type lies between it and the next key. */
  private def gapsOf(sorted: Array[Any], dataType: DataType): Array[Double] = {
    val (position, step) = dataType match {
      case StringType =>
        val shared = sharedBytes(sorted)
        ((key: Any) => positionAfter(key.asInstanceOf[UTF8String], shared), 0.0)
      case _: DecimalType => ((key: Any) => key.asInstanceOf[Decimal].toDouble, 0.0)
      case other if isWhole(other) => ((key: Any) => key.asInstanceOf[Number].doubleValue, 1.0)
      case _ => ((key: Any) => key.asInstanceOf[Number].doubleValue, 0.0)
    }
    val positions = sorted.map(position)
    Array.tabulate(math.max(0, sorted.length - 1))(i => positions(i + 1) - positions(i) - step)
  }

  /** Whether nothing lies between a value and the value plus one. */
  private def isWhole(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType => true
    case _ => false
  }

  private def sharedBytes(sorted: Array[Any]): Int =
    if (sorted.isEmpty) 0
    else {
      val (first, last) = (sorted.head.asInstanceOf[UTF8String].getBytes, sorted.last.asInstanceOf[UTF8String].getBytes)
      first.zip(last).takeWhile { case (a, b) => a == b }.length
    }

  /** The next bytes of a text as a number, in the order of texts. */
  private def positionAfter(text: UTF8String, shared: Int): Double = {
    val bytes = text.getBytes
    (shared until shared + 6).foldLeft(0.0)((sum, i) => sum * 256 + (if (i < bytes.length) bytes(i) & 0xff else 0))
  }

  private def isNaN(key: Any): Boolean = key match {
    case number: Double => number.isNaN
    case number: Float => number.isNaN
    case _ => false
  }

  /**
   * Whether a string may lie beyond the bounds of its file: it is not UTF-8, or has the last code point, with which Delta ends
   * the prefix that it stores of a long maximum.
   */
  private def isInvalid(key: Any): Boolean = key match {
    case text: UTF8String => !text.isValid || text.contains(LastCodePoint)
    case _ => false
  }

  private def asciiStart(text: UTF8String): UTF8String = UTF8String.fromBytes(text.getBytes.takeWhile(_ >= 0))

  /** A string itself if it is ASCII; else the least one of ASCII above it, None if there is none. */
  private def asciiAbove(text: UTF8String): Option[UTF8String] = {
    val start = text.getBytes.takeWhile(_ >= 0)
    if (start.length == text.numBytes) Some(text)
    else {
      val before = start.reverse.dropWhile(_ == Byte.MaxValue).reverse
      before.lastOption.map(last => UTF8String.fromBytes(before.init :+ (last + 1).toByte))
    }
  }

  /** A tree of alternatives that is as flat as possible, so that no stack has to hold a long chain. */
  private def anyOf(alternatives: Seq[Expression]): Expression = alternatives match {
    case Seq() => Literal.FalseLiteral
    case Seq(one) => one
    case many =>
      val (left, right) = many.splitAt(many.size / 2)
      Or(anyOf(left), anyOf(right))
  }
}
