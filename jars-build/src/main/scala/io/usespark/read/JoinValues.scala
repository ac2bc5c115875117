package io.usespark

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta.usespark.IndexedTransaction
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.usespark.SideKeys
import org.apache.spark.sql.usespark.SessionSettings

/** What the keys of a join can save: bytes of the scan's files, of its columns in them, and the share one key leaves. */
final case class Savings(fileBytes: Long, columnBytes: Long, oneKeyShare: () => Double)

/**
 * The values of the keys of joins.
 *
 * Those of a broadcast are there when the scan starts. For a side that is shuffled, a job of its own collects them, once
 * for a query, if Python finds that it pays.
 *
 * @param isSimulated whether the query is explained, so that nothing is broadcast and a query of each side has its keys.
 */
final class JoinValues(session: SparkSession, limits: KeyLimits, isSimulated: Boolean) extends Logging {
  import JoinValues._

  private var started: Option[FileCount] = None
  private val explained = mutable.Map.empty[Seq[Expression], Rows]

  /** What jobs have read since the last call; None if none was started. */
  def takeStarted(): Option[FileCount] = {
    val read = started
    started = None
    read
  }

  /** The values of a key without nulls, or the code of the reason why they are not known. */
  def of(key: JoinKey, savings: => Savings): Either[String, Array[Any]] =
    if (SideKeys.isBroadcast(key.side))
      SideKeys.broadcast(key.side, key.keys, key.position, limits.keys).toRight("TOO_MANY_KEYS")
    else {
      val rows =
        if (!key.isShuffled) explained.getOrElseUpdate(key.keys, simulated(key))
        else Option(known(key.join).get(key.keys)).getOrElse(fromJob(key, savings))
      rows.map(SideKeys.values(_, key.keys, key.position))
    }

  private def fromJob(key: JoinKey, savings: => Savings): Rows =
    for {
      _ <- Either.cond(limits.startsJobs && !isInJob.get, (), "SHUFFLED")
      saved = savings
      _ <- Either.cond(saved.fileBytes >= limits.bytes, (), "SMALL_SCAN")
      side <- JoinSide.of(key)
      // The share of one key may need a job, which a side that is too large in any case does not start.
      _ <- refused(saved, side, 0.0).toLeft(())
      _ <- refused(saved, side, saved.oneKeyShare()).toLeft(())
      rows = collected(key, side)
      _ = known(key.join).put(key.keys, rows)
      found <- rows
    } yield found

  private def refused(saved: Savings, side: JoinSide, oneKeyShare: Double): Option[String] = {
    val question = Map[String, Any](
      "scan_bytes" -> saved.columnBytes,
      "side_bytes" -> side.bytes,
      "one_key_share" -> oneKeyShare,
      "settings" -> SessionSettings.json(session)
    )
    Python.text(Operation.PLAN_KEY_JOB, question)
  }

  /** In an explanation, a side that would be broadcast is queried, however it was made. */
  private def simulated(key: JoinKey): Rows =
    if (!isSimulated) Left("TOO_MANY_KEYS")
    else SideKeys.query(key.side).toRight("JOB_FAILED").flatMap(plan => collected(key, JoinSide(plan, key.keys)))

  private def collected(key: JoinKey, side: JoinSide): Rows = {
    isInJob.set(true)
    try {
      val description = s"USE keys of ${JoinReport.sideOf(key.side)} for a join"
      val (rows, scans) = SideKeys.collected(
        session.asInstanceOf[classic.SparkSession],
        side.plan,
        side.keys,
        limits.keys,
        description
      )
      val read = scans.flatMap(ScanCounts.ofScan(_)).map(_.read)
      val before = started.getOrElse(FileCount(0, 0))
      started = Some(FileCount(before.files + read.map(_.files).sum, before.bytes + read.map(_.bytes).sum))
      rows.toRight("TOO_MANY_KEYS")
    } catch {
      case NonFatal(error) if !IndexedTransaction.endsStatement(error) =>
        logWarning("The keys of a join were not collected.", error)
        Left("JOB_FAILED")
    } finally isInJob.set(false)
  }
}

object JoinValues {
  type Rows = Either[String, Array[InternalRow]]

  /** On a join: the rows of the jobs that were started for it, by the keys of the side. */
  private val Known = TreeNodeTag[ConcurrentHashMap[Seq[Expression], Rows]]("use.join.keys")

  /** A job for keys starts no other. */
  private val isInJob = ThreadLocal.withInitial[Boolean](() => false)

  /**
   * What was collected for a join. The plans that adaptive execution makes of a query one after the other share it, if it was
   * asked for at the first of them.
   */
  def known(join: SparkPlan): ConcurrentHashMap[Seq[Expression], Rows] = join.logicalLink match {
    case Some(node) => known(node)
    case None => known[SparkPlan](join)
  }

  private def known[T <: TreeNode[T]](node: T): ConcurrentHashMap[Seq[Expression], Rows] = {
    if (node.getTagValue(Known).isEmpty) node.setTagValue(Known, new ConcurrentHashMap[Seq[Expression], Rows]())
    node.getTagValue(Known).get
  }
}
