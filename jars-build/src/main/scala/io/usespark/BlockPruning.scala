package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.{DeltaScan, PreparedDeltaFileIndex}

/** What one revision's blocks must meet: weights [first, last] and a closed box of coordinates. */
final case class BlockQuery(firstWeight: Int, lastWeight: Int, lower: Seq[Double], upper: Seq[Double]) {
  private val (low, high) = (lower.toArray, upper.toArray)

  def weighs(minWeight: Int, maxWeight: Int): Boolean = minWeight <= lastWeight && maxWeight >= firstWeight

  /** Whether the cube's box meets the query's, borders included. */
  def meets(cubeId: String): Boolean = {
    val dimensions = low.length
    val symbolsPerLevel = (dimensions + 5) / 6
    val from = new Array[Double](dimensions)
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
    (0 until dimensions).forall(d => from(d) <= high(d) && from(d) + size >= low(d))
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
      } yield BlockPruning.anyBlock(blocks, query)).getOrElse(true)
}

object BlockPruning {
  val Symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  private val factory = new JsonFactory()

  def parse(json: String): BlockPruning = {
    def numbers(node: JsonNode) = node.elements().asScala.map(_.asDouble()).toSeq
    val revisions = new ObjectMapper().readTree(json).get("revisions").properties().asScala.map { entry =>
      val node = entry.getValue
      entry.getKey -> BlockQuery(
        node.get("first_weight").asInt(),
        node.get("last_weight").asInt(),
        numbers(node.get("lower")),
        numbers(node.get("upper"))
      )
    }
    BlockPruning(revisions.toMap)
  }

  /** Reads blocks until one meets the query, true also where there is none to judge by: with 100,000 files, parsing whole tags would dominate planning. */
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
    query.weighs(minWeight, maxWeight) && query.meets(cubeId)
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
