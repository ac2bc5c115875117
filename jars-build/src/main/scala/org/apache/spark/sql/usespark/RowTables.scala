package org.apache.spark.sql.usespark

import java.nio.ByteBuffer
import java.{util => ju}

import org.apache.spark.sql.catalyst.util.ArrayData

/** Reads what Python packs: numbers one after the other, and the length of each text before it. */
private object Packed {
  def ints(in: ByteBuffer, count: Int): Array[Int] = Array.fill(count)(in.getInt())
  def longs(in: ByteBuffer, count: Int): Array[Long] = Array.fill(count)(in.getLong())
  def texts(in: ByteBuffer, count: Int): Array[Array[Byte]] = Array.fill(count) {
    val text = new Array[Byte](in.getInt())
    in.get(text)
    text
  }

  /** Adding zero makes the negative zero the positive one. */
  def doubles(in: ByteBuffer, count: Int): Array[Double] = Array.fill(count)(in.getDouble() + 0.0)
}

/** Ascending numbers that values are looked up among; a negative zero is found where a positive one is. */
sealed abstract class Quantiles(in: ByteBuffer) extends Serializable {
  protected val quantiles: Array[Double] = Packed.doubles(in, in.getInt())
  protected def find(value: Double): Int = ju.Arrays.binarySearch(quantiles, value + 0.0)
  override def toString: String = s"${quantiles.length} quantiles"
}

/** The place in [0, 1] of a number among quantiles. */
final class NumericQuantiles(in: ByteBuffer) extends Quantiles(in) {
  private val steps = quantiles.length - 1

  /** A hit at i is i / steps, what lies between neighbours is linear, and NaN comes after all others. */
  def place(value: Double): Double = {
    val at = find(value)
    val next = -at - 1
    if (at >= 0) at.toDouble / steps
    else if (next == 0) 0.0
    else if (next > steps) 1.0
    else (next - 1 + (value - quantiles(next - 1)) / (quantiles(next) - quantiles(next - 1))) / steps
  }
}

/** The codes of numbers: one for those below the first quantile, and one for those from each quantile on. */
final class DoubleRanks(in: ByteBuffer) extends Quantiles(in) {
  private val codes = Packed.ints(in, quantiles.length + 1)

  def codeOf(value: Double): Int = {
    val at = find(value)
    codes(if (at >= 0) at + 1 else -at - 1)
  }
}

/** The same for byte strings, in the order of their unsigned bytes. */
final class BinaryRanks(in: ByteBuffer) extends Serializable {
  private val quantiles = Packed.texts(in, in.getInt())
  private val codes = Packed.ints(in, quantiles.length + 1)

  def codeOf(value: Array[Byte]): Int = {
    val at = ju.Arrays.binarySearch(quantiles, value, ju.Arrays.compareUnsigned(_: Array[Byte], _: Array[Byte]))
    codes(if (at >= 0) at + 1 else -at - 1)
  }
  override def toString: String = s"${quantiles.length} quantiles"
}

/** Levels of the index space: each halves it in every dimension. */
object Level {

  /** The cell that a point lies in, after `depth` levels. */
  def cell(coordinates: ArrayData, depth: Int): Long = {
    val point = coordinates.toDoubleArray()
    var cell = 0L
    var level = 0
    while (level < depth) {
      cell = (cell << point.length) | next(point)
      level += 1
    }
    cell
  }

  /**
   * The code of the next level, with the bit of the first dimension highest; `point` becomes the point inside that
   * child. Coordinate 1.0 stays in the last one.
   */
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
final class CubeLookup(dimensions: Int, in: ByteBuffer) extends Serializable {
  private val thresholds = Packed.ints(in, in.getInt())
  private val childKeys = Packed.longs(in, in.getInt())
  private val childNodes = Packed.ints(in, childKeys.length)

  def find(coordinates: ArrayData, weight: Int): Long = {
    if (thresholds.isEmpty) return 0L
    val point = coordinates.toDoubleArray()
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

/**
 * Files by weight band, and by run of the curve within each.
 *
 * Band b starts at `firstWeights(b)` and has the runs from `firstRuns(b)` up to the next band's. Run r starts at
 * `firstKeys(r)` and has `widths(r)` files from `firstFiles(r)` on, among which rows are spread.
 */
final class PackedFiles(in: ByteBuffer) extends Serializable {
  private val (bands, runs) = (in.getInt(), in.getInt())
  private val firstWeights = Packed.ints(in, bands)
  private val firstRuns = Packed.ints(in, bands)
  private val firstKeys = Packed.longs(in, runs)
  private val firstFiles = Packed.ints(in, runs)
  private val widths = Packed.ints(in, runs)

  def fileOf(weight: Int, key: Long, spread: Long): Int = {
    val position = ju.Arrays.binarySearch(firstWeights, weight)
    val band = if (position >= 0) position else math.max(-position - 2, 0)
    val end = if (band + 1 < firstRuns.length) firstRuns(band + 1) else firstKeys.length
    val at = ju.Arrays.binarySearch(firstKeys, firstRuns(band), end, key)
    val run = if (at >= 0) at else math.max(-at - 2, firstRuns(band))
    if (widths(run) == 1) firstFiles(run) else firstFiles(run) + java.lang.Math.floorMod(spread, widths(run))
  }
  override def toString: String = s"$bands bands, $runs runs"
}

/** The index along the Hilbert curve, by John Skilling's transform ("Programming the Hilbert curve", 2004). */
object Hilbert {
  def key(codes: ArrayData, bits: Int): Long = {
    val point = codes.toIntArray()
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
