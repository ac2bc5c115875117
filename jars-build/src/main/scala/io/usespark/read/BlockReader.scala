package io.usespark

import scala.util.control.{NoStackTrace, NonFatal}

import com.fasterxml.jackson.core.{JsonFactory, JsonToken}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.unsafe.types.UTF8String

/** A tag that does not follow the index format. */
final class UnreadableTag(message: String) extends IllegalArgumentException(message) with NoStackTrace

/**
 * Reads the blocks of a file's tag one after the other.
 *
 * This is the one definition of a readable tag: a JSON array of at least one object with exactly the format's fields,
 * cubes of the revision, weights in order and counts that are not negative. Anything else throws, and the file counts
 * as unindexed.
 */
final class BlockReader(json: String, dimensions: Int) {
  private val parser = BlockReader.factory.createParser(json)
  private val symbolsPerLevel = (dimensions + 5) / 6
  private val unusedBits = symbolsPerLevel * 6 - dimensions
  private var read = 0
  require(dimensions > 0 && parser.nextToken() == JsonToken.START_ARRAY, "no array")

  var cubeId = ""
  var minWeight = 0
  var maxWeight = 0
  var elementCount = 0L

  /** Moves to the next block; false after the last one. */
  def next(): Boolean = parser.nextToken() match {
    case JsonToken.START_OBJECT =>
      fields()
      require(minWeight <= maxWeight, "weights reversed")
      require(elementCount >= 0, "a negative count")
      checkCube()
      read += 1
      true
    case JsonToken.END_ARRAY =>
      require(read > 0 && parser.nextToken() == null, "no block, or text behind the array")
      false
    case _ => throw new UnreadableTag("not a block")
  }

  /** Finds where the block's cube starts in each dimension; returns the length of its sides. */
  def corner(from: Array[Double]): Double = {
    java.util.Arrays.fill(from, 0.0)
    var size = 1.0
    var at = 0
    while (at < cubeId.length) {
      size /= 2
      var d = 0
      while (d < dimensions) {
        if ((BlockReader.value(cubeId.charAt(at + d / 6)) >> (5 - d % 6) & 1) == 1) from(d) += size
        d += 1
      }
      at += symbolsPerLevel
    }
    size
  }

  def close(): Unit = parser.close()

  private def fields(): Unit = {
    var seen = 0
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val field = parser.currentName()
      val token = parser.nextToken()
      val bit = field match {
        case "cubeId" if token == JsonToken.VALUE_STRING => cubeId = parser.getText; 1
        case "minWeight" if token == JsonToken.VALUE_NUMBER_INT => minWeight = parser.getIntValue; 2
        case "maxWeight" if token == JsonToken.VALUE_NUMBER_INT => maxWeight = parser.getIntValue; 4
        case "elementCount" if token == JsonToken.VALUE_NUMBER_INT => elementCount = parser.getLongValue; 8
        case "replicated" => parser.skipChildren(); 0
        case _ => throw new UnreadableTag(s"the field $field")
      }
      require((seen & bit) == 0, "a field twice")
      seen |= bit
    }
    require(seen == 15 && parser.currentToken() == JsonToken.END_OBJECT, "a field is missing")
  }

  private def checkCube(): Unit = {
    require(cubeId.length % symbolsPerLevel == 0, "a cube id of a wrong length")
    var i = 0
    while (i < cubeId.length) {
      val value = BlockReader.value(cubeId.charAt(i))
      require(value >= 0, "a symbol that cube ids do not have")
      i += 1
      if (i % symbolsPerLevel == 0) require((value & ((1 << unusedBits) - 1)) == 0, "a cube id with too many bits")
    }
  }

  private def require(holds: Boolean, what: => String): Unit = if (!holds) throw new UnreadableTag(what)
}

object BlockReader {
  private val factory = new JsonFactory()
  private val values: Array[Int] = {
    val symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    Array.tabulate(128)(character => symbols.indexOf(character))
  }

  /** The six bits that a symbol stands for; -1 for what is no symbol. */
  private def value(symbol: Char): Int = if (symbol < 128) values(symbol) else -1

  /** What is made of the blocks of a file; `unreadable` for a tag that cannot be read, as far as it was read. */
  def read[T](json: String, dimensions: Int, unreadable: T)(make: BlockReader => T): T =
    try {
      val reader = new BlockReader(json, dimensions)
      try make(reader)
      finally reader.close()
    } catch { case NonFatal(_) => unreadable }

  /** The blocks as rows of cube id, smallest and largest weight, and number of rows; null for an unreadable tag. */
  def rows(json: UTF8String, dimensions: Int): ArrayData =
    read[ArrayData](json.toString, dimensions, null) { block =>
      val blocks = Array.newBuilder[Any]
      while (block.next())
        blocks += InternalRow(
          UTF8String.fromString(block.cubeId),
          block.minWeight,
          block.maxWeight,
          block.elementCount
        )
      new GenericArrayData(blocks.result())
    }
}
