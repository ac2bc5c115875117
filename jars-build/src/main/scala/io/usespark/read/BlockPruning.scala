package io.usespark

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.{DeltaScan, PreparedDeltaFileIndex}
import org.apache.spark.sql.usespark.SessionSettings

/** Weights [first, last] and a closed box of coordinates. */
final case class Box(firstWeight: Int, lastWeight: Int, lower: Seq[Double], upper: Seq[Double]) {
  private val (low, high) = (lower.toArray, upper.toArray)

  def weighs(minWeight: Int, maxWeight: Int): Boolean = minWeight <= lastWeight && maxWeight >= firstWeight

  def limitsWeights: Boolean = firstWeight > Int.MinValue || lastWeight < Int.MaxValue

  def limitsSpace: Boolean = lower.exists(_ > 0) || upper.exists(_ < 1)

  def ofAllWeights: Box = copy(firstWeight = Int.MinValue, lastWeight = Int.MaxValue)

  /** Whether the cube that starts at `from` meets the box, borders included. */
  def meets(from: Array[Double], size: Double): Boolean = {
    var d = 0
    while (d < low.length && from(d) <= high(d) && from(d) + size >= low(d)) d += 1
    d == low.length
  }
}

/** What one revision's blocks must meet: any of some boxes; without boxes, the query needs no row of the revision. */
final case class BlockQuery(dimensions: Int, boxes: Seq[Box]) {
  private val all = boxes.toArray

  def weighs(minWeight: Int, maxWeight: Int): Boolean = all.exists(_.weighs(minWeight, maxWeight))

  /** Whether the query may need rows of the block that is being read. */
  def meets(block: BlockReader): Boolean =
    weighs(block.minWeight, block.maxWeight) && {
      val from = new Array[Double](dimensions)
      val size = block.corner(from)
      all.exists(box => box.weighs(block.minWeight, block.maxWeight) && box.meets(from, size))
    }
}

/** Which files can hold rows of the query, per revision; files without blocks that can be read always can. */
final case class BlockPruning(revisions: Map[String, BlockQuery]) {
  def keep(file: AddFile): Boolean =
    if (file.tags == null) true
    else
      (for {
        revision <- file.tags.get("revision")
        query <- revisions.get(revision)
        blocks <- file.tags.get("blocks")
      } yield BlockPruning.anyBlock(blocks, BlockPruning.band(file.tags), query)).getOrElse(true)

  def limitsWeights: Boolean = revisions.values.exists(_.boxes.exists(_.limitsWeights))

  def limitsSpace: Boolean =
    revisions.values.exists(query => query.boxes.isEmpty || query.boxes.exists(_.limitsSpace))

  /** The same regions of space, with rows of every weight. */
  def ofAllWeights: BlockPruning =
    BlockPruning(revisions.map { case (id, query) => id -> query.copy(boxes = query.boxes.map(_.ofAllWeights)) })
}

object BlockPruning {
  private val mapper = new ObjectMapper()

  /** What Python says of the conditions of a scan; None if they skip no file. */
  def of(session: SparkSession, configuration: Map[String, String], conditions: String): Option[BlockPruning] = {
    val question = Map(
      "configuration" -> IndexedRelation.json(configuration),
      "conditions" -> conditions,
      "settings" -> SessionSettings.json(session)
    )
    Python.text(Operation.PLAN_READ, question).map(parse)
  }

  def parse(json: String): BlockPruning = {
    def numbers(node: JsonNode) = node.elements().asScala.map(_.asDouble()).toSeq
    def box(node: JsonNode) = Box(
      node.get("first_weight").asInt(),
      node.get("last_weight").asInt(),
      numbers(node.get("lower")),
      numbers(node.get("upper"))
    )
    val revisions = mapper.readTree(json).get("revisions").properties().asScala.map { entry =>
      val node = entry.getValue
      entry.getKey -> BlockQuery(node.get("dimensions").asInt(), node.get("boxes").elements().asScala.map(box).toSeq)
    }
    BlockPruning(revisions.toMap)
  }

  /** The first and last weight of the rows in the file, as our own tag [from, to) says; None where it says nothing. */
  private def band(tags: Map[String, String]): Option[(Int, Int)] = {
    val text = tags.getOrElse("use.band", "")
    val comma = text.indexOf(',')
    if (comma < 0) None
    else
      (text.substring(0, comma).toLongOption, text.substring(comma + 1).toLongOption) match {
        case (Some(from), Some(to)) if from >= Int.MinValue && from < to && to - 1 <= Int.MaxValue =>
          Some((from.toInt, (to - 1).toInt))
        case _ => None
      }
  }

  /**
   * Whether the query may need rows of the file. The band is tested first, because it is narrower than the blocks; it
   * counts only if the first block begins inside it. Blocks are then read until one matches the query: with 100,000
   * files, parsing whole tags would dominate planning. A tag that cannot be read may stand for any row.
   */
  private def anyBlock(json: String, band: Option[(Int, Int)], query: BlockQuery): Boolean =
    BlockReader.read(json, query.dimensions, unreadable = true) { block =>
      var more = block.next()
      val elsewhere = block.elementCount > 0 && band.exists { case (first, last) =>
        first <= block.minWeight && block.minWeight <= last && !query.weighs(first, last)
      }
      var meets = false
      while (more && !meets && !elsewhere) {
        meets = query.meets(block)
        more = !meets && block.next()
      }
      meets
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

  /** Candidates that the query would read if it needed rows of every weight. */
  lazy val inSpace: FileCount =
    if (!pruning.limitsSpace) FileCount.of(candidates)
    else if (pruning.limitsWeights) FileCount.of(candidates.filter(pruning.ofAllWeights.keep))
    else FileCount.of(preparedScan.files)

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
  private[usespark] def withFiles(scan: DeltaScan, files: Seq[AddFile]): DeltaScan =
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
