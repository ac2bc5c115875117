package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.{DeltaScan, PreparedDeltaFileIndex}

/** Weights [first, last] and a closed box of coordinates. */
final case class Box(firstWeight: Int, lastWeight: Int, lower: Seq[Double], upper: Seq[Double]) {
  private val (low, high) = (lower.toArray, upper.toArray)

  def weighs(minWeight: Int, maxWeight: Int): Boolean = minWeight <= lastWeight && maxWeight >= firstWeight

  /** Whether the cube that starts at `from` meets the box, borders included. */
  def meets(from: Array[Double], size: Double): Boolean = {
    var d = 0
    while (d < low.length && from(d) <= high(d) && from(d) + size >= low(d)) d += 1
    d == low.length
  }
}

/** What one revision's blocks must meet: any of some boxes; without boxes, no row of the revision is asked for. */
final case class BlockQuery(dimensions: Int, boxes: Seq[Box]) {
  private val all = boxes.toArray

  def weighs(minWeight: Int, maxWeight: Int): Boolean = all.exists(_.weighs(minWeight, maxWeight))

  def meets(cubeId: String, minWeight: Int, maxWeight: Int): Boolean =
    weighs(minWeight, maxWeight) && {
      val from = new Array[Double](dimensions)
      val size = corner(cubeId, from)
      all.exists(box => box.weighs(minWeight, maxWeight) && box.meets(from, size))
    }

  /** Finds where the cube starts in each dimension; returns the length of its sides. */
  private def corner(cubeId: String, from: Array[Double]): Double = {
    val symbolsPerLevel = (dimensions + 5) / 6
    var size = 1.0
    var at = 0
    while (at + symbolsPerLevel <= cubeId.length) {
      size /= 2
      var d = 0
      while (d < dimensions) {
        val symbol = BlockPruning.Symbols.indexOf(cubeId.charAt(at + d / 6))
        if ((symbol >> (5 - d % 6) & 1) == 1) from(d) += size
        d += 1
      }
      at += symbolsPerLevel
    }
    size
  }
}

/** Which files can hold rows of the query, per revision; files without blocks always can. */
final case class BlockPruning(revisions: Map[String, BlockQuery]) {
  def keep(file: AddFile): Boolean =
    if (file.tags == null) true
    else
      (for {
        revision <- file.tags.get("revision")
        query <- revisions.get(revision)
        blocks <- file.tags.get("blocks")
      } yield BlockPruning.bandMeets(file.tags, query) && BlockPruning.anyBlock(blocks, query)).getOrElse(true)
}

object BlockPruning {
  val Symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  private val factory = new JsonFactory()

  def parse(json: String): BlockPruning = {
    def numbers(node: JsonNode) = node.elements().asScala.map(_.asDouble()).toSeq
    def box(node: JsonNode) = Box(
      node.get("first_weight").asInt(),
      node.get("last_weight").asInt(),
      numbers(node.get("lower")),
      numbers(node.get("upper"))
    )
    val revisions = new ObjectMapper().readTree(json).get("revisions").properties().asScala.map { entry =>
      val node = entry.getValue
      entry.getKey -> BlockQuery(node.get("dimensions").asInt(), node.get("boxes").elements().asScala.map(box).toSeq)
    }
    BlockPruning(revisions.toMap)
  }

  /** A first look at the weights [from, to) that are really in the file: narrower than its blocks, and cheaper. */
  private def bandMeets(tags: Map[String, String], query: BlockQuery): Boolean = {
    val band = tags.getOrElse("use.band", "")
    val comma = band.indexOf(',')
    if (comma < 0) true
    else
      (band.substring(0, comma).toLongOption, band.substring(comma + 1).toLongOption) match {
        case (Some(from), Some(to)) if from >= Int.MinValue && from < to && to - 1 <= Int.MaxValue =>
          query.weighs(from.toInt, (to - 1).toInt)
        case _ => true
      }
  }

  /**
   * Reads blocks until one meets the query, true also where there is none to judge by: with 100,000 files, parsing whole
   * tags would dominate planning.
   */
  private def anyBlock(json: String, query: BlockQuery): Boolean = {
    val parser = factory.createParser(json)
    try {
      var (found, blocks) = (false, 0)
      while (!found && parser.nextToken() != null)
        if (parser.currentToken() == JsonToken.START_OBJECT) {
          found = blockMeets(parser, query)
          blocks += 1
        }
      found || blocks == 0
    } finally parser.close()
  }

  private def blockMeets(parser: JsonParser, query: BlockQuery): Boolean = {
    var cubeId = ""
    var minWeight = Int.MinValue
    var maxWeight = Int.MaxValue
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val field = parser.currentName()
      parser.nextToken()
      field match {
        case "cubeId" => cubeId = parser.getText
        case "minWeight" => minWeight = parser.getIntValue
        case "maxWeight" => maxWeight = parser.getIntValue
        case _ => parser.skipChildren()
      }
    }
    query.meets(cubeId, minWeight, maxWeight)
  }
}

/**
 * Delta's prepared file index, less the files whose blocks cannot hold rows of the query.
 *
 * The prepared scan holds the kept files only: the optimizer compares plans, and Delta compares prepared scans. When
 * filters change later, Delta selects anew from the snapshot, and that selection is pruned again.
 */
class BlockFileIndex(base: PreparedDeltaFileIndex, val pruning: BlockPruning, kept: Seq[AddFile])
    extends PreparedDeltaFileIndex(
      base.spark,
      base.deltaLog,
      base.path,
      base.catalogTableOpt,
      BlockFileIndex.withFiles(base.preparedScan, kept),
      base.versionScanned
    ) {

  /** Files that Delta's statistics kept. */
  def candidates: Seq[AddFile] = base.preparedScan.files

  override def matchingFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[AddFile] =
    super.matchingFiles(partitionFilters, dataFilters).filter(pruning.keep)

  override def equals(other: Any): Boolean = other match {
    case index: BlockFileIndex => pruning == index.pruning && super.equals(index)
    case _ => false
  }
  override def hashCode(): Int = super.hashCode() * 31 + pruning.hashCode()
  override def toString: String = s"BlockFileIndex(version=${preparedScan.version}, path=$path)"
}

object BlockFileIndex {
  private def withFiles(scan: DeltaScan, files: Seq[AddFile]): DeltaScan =
    scan.copy(
      files = files,
      scanned = scan.scanned.copy(bytesCompressed = Some(files.map(_.size).sum), files = Some(files.size.toLong))
    )(
      scan.scannedSnapshot,
      scan.partitionFilters,
      scan.dataFilters,
      scan.partitionLikeDataFilters,
      scan.rewrittenPartitionLikeDataFilters,
      scan.unusedFilters,
      scan.scanDurationMs,
      scan.dataSkippingType
    )
}
