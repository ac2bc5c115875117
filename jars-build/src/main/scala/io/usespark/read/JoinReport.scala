package io.usespark

import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.databind.node.ArrayNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.{FileSourceScanExec, QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper

/** The joins above one scan, and its file index if their keys were looked at. */
final case class JoinsOfScan(index: Option[JoinFileIndex], outcomes: Seq[JoinOutcome]) {
  def put(json: ArrayNode): Unit = outcomes.foreach { outcome =>
    val node = json.addObject().put("side", outcome.side)
    val columns = node.putArray("columns")
    outcome.columns.foreach(name => columns.add(name))
    outcome.keys.fold(node.putNull("keys"))(node.put("keys", _))
    outcome.reason.fold(node.putNull("reason"))(node.put("reason", _))
    node.put("files", outcome.files.files).put("bytes", outcome.files.bytes)
    outcome.job.fold(node.putNull("job_files"))(job => node.put("job_files", job.files))
    outcome.job.fold(node.putNull("job_bytes"))(job => node.put("job_bytes", job.bytes))
  }
}

/** What the joins of a plan did to the files of its scans, each of which is taken once. */
final class JoinReport private (scans: Seq[(PreparedDeltaFileIndex, JoinsOfScan)]) {
  private val open = scans.to(ArrayBuffer)

  /** The joins of the next scan with this index; a scan that is not executed, such as a reused one, has none. */
  def next(index: PreparedDeltaFileIndex): JoinsOfScan = {
    val position = open.indexWhere(_._1 eq index)
    if (position < 0) JoinsOfScan(None, Nil) else open.remove(position)._2
  }
}

object JoinReport extends AdaptiveSparkPlanHelper {
  import JoinedScans.NotExecuted

  /** The report of a query, executed or not. */
  def of(execution: QueryExecution): JoinReport = report(execution)((scan, _) => scan)

  /**
   * The report of a query that is not executed, as if it were: each side that would be broadcast is queried now, and so is
   * each side for which a job would be started. Without adaptive execution, none is, since no file would be skipped either.
   */
  def simulated(execution: QueryExecution): JoinReport = {
    val (session, limits) = (execution.sparkSession, KeyLimits.of(execution.sparkSession))
    val values = new JoinValues(session, limits, isSimulated = true)
    report(execution) { (scan, keys) =>
      val ofStage = keys.filter(key => !key.isShuffled && key.refusal.contains(NotExecuted)).map(_.copy(refusal = None))
      if (!limits.enabled) scan
      else NarrowedScan(session, scan, ofStage ++ ShuffledKeys.of(scan), limits, values).result
    }
  }

  private def report(
      execution: QueryExecution
  )(narrow: (FileSourceScanExec, Seq[JoinKey]) => FileSourceScanExec): JoinReport = {
    val hasJoin = execution.optimizedPlan.collectWithSubqueries { case join: Join => join }.nonEmpty
    val plans = if (hasJoin) execution.executedPlan +: subqueriesAll(execution.executedPlan) else Nil
    new JoinReport(plans.flatMap(JoinedScans.of(_, intoStages = true)).flatMap { case (scan, keys) =>
      val narrowed = narrow(scan, keys)
      val looked = narrowed.getTagValue(JoinOutcome.Tag)
      val others = keys.filter(key => looked.isEmpty || !key.refusal.forall(_ == NotExecuted))
      Some(narrowed.relation.location)
        .collect {
          case index: JoinFileIndex => index.base -> Some(index)
          case index: PreparedDeltaFileIndex => index -> None
        }
        .map { case (index, joined) =>
          val files = joined.fold(FileCount.of(index.preparedScan.files))(_.count)
          index -> JoinsOfScan(joined, looked.getOrElse(Nil) ++ outcomes(others, files, execution.sparkSession))
        }
    })
  }

  private def outcomes(keys: Seq[JoinKey], files: FileCount, session: SparkSession): Seq[JoinOutcome] =
    JoinedScans.byJoin(keys).map { ofJoin =>
      val code = ofJoin.head.refusal match {
        case None | Some(NotExecuted) if !JoinPruning.isEnabled(session) => "SWITCHED_OFF"
        case refusal => refusal.getOrElse("NOT_CONSIDERED")
      }
      JoinOutcome(sideOf(ofJoin.head.side), ofJoin.map(nameOf).distinct, None, Some(code), files)
    }

  /** The names of the tables in the other side of a join. */
  def sideOf(side: SparkPlan): String = {
    val tables = collect(side) { case scan: FileSourceScanExec => ScanCounts.ofScan(scan).map(_.table) }.flatten
    if (tables.isEmpty) "other rows" else tables.distinct.mkString(", ")
  }

  /** The columns in a key. */
  def nameOf(key: JoinKey): String = key.value.references.map(_.name).toSeq.sorted.mkString(", ")
}
