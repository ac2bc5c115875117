package org.apache.spark.sql.delta.usespark

import java.{util => ju}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.sources.DeltaSQLConf.DELTA_SNAPSHOT_PARTITIONS
import org.apache.spark.sql.execution.command.RunnableCommand
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf.ADAPTIVE_EXECUTION_ENABLED

/**
 * Has Delta keep the list of files of a small log in few partitions.
 *
 * Delta takes 50, however small the log is, and each query runs a job over them for each of its tables. Adaptive
 * execution adds a job for each exchange. Where the owner has set a number of partitions, it stays.
 */
case class SmallLogs(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    SmallLogs.snapshotsOf(plan).foreach(prepare)
    plan
  }

  private def prepare(snapshot: Snapshot): Unit =
    if (!snapshot.stateReconstructionTriggered && !session.conf.contains(DELTA_SNAPSHOT_PARTITIONS.key)) {
      try {
        val partitions = 1 + SmallLogs.bytesOf(snapshot) / SmallLogs.BytesPerPartition
        if (partitions < snapshot.getNumPartitions) SmallLogs.replay(session, snapshot, partitions)
      } catch {
        // The query shows what is wrong with the log.
        case NonFatal(error) => logDebug("The log cannot be prepared.", error)
      }
    }
}

object SmallLogs {

  /** As in `catalog/jvm/session.py`. */
  private val BytesPerPartition = 4000000L

  // A new session makes the query listeners of the application again. So there is one beside each session of users.
  private val ownSessions = new ju.WeakHashMap[classic.SparkSession, classic.SparkSession]

  /**
   * The versions of tables that a plan reads; statements that change rows have their table in a field. The log is not
   * listed for this: of the newest version, it is the newest one that Delta has.
   */
  private def snapshotsOf(plan: LogicalPlan): Seq[Snapshot] = plan.collect {
    case scan: LogicalRelation =>
      scan.relation match {
        case HadoopFsRelation(index: TahoeLogFileIndex, _, _, _, _, _) =>
          Seq(if (index.isTimeTravelQuery) index.snapshotAtAnalysis else index.deltaLog.unsafeVolatileSnapshot)
            .collect { case version: Snapshot => version }
        case _ => Nil
      }
    case command: RunnableCommand with Product =>
      command.productIterator.toSeq.flatMap {
        case ResolvedTable(_, _, table: DeltaTableV2, _) => Seq(table.deltaLog.unsafeVolatileSnapshot)
        case changed: LogicalPlan => snapshotsOf(changed)
        case _ => Nil
      }
  }.flatten

  private def bytesOf(snapshot: Snapshot): Long =
    snapshot.logSegment.deltas.map(_.getLen).sum + snapshot.checkpointProvider.effectiveCheckpointSizeInBytes()

  /**
   * Delta reads the settings of the active session when it first needs the files. A clone of the session would copy the
   * files of its artifacts.
   */
  private def replay(session: SparkSession, snapshot: Snapshot, partitions: Long): Unit = {
    val user = session.asInstanceOf[classic.SparkSession]
    val own = ownSessions.synchronized(ownSessions.computeIfAbsent(user, _.newSession()))
    val settings = user.sessionState.conf.getAllConfs ++
      Seq(DELTA_SNAPSHOT_PARTITIONS.key -> partitions.toString, ADAPTIVE_EXECUTION_ENABLED.key -> "false")
    // Queries of a session run in several threads.
    own.synchronized {
      val conf = own.sessionState.conf
      (conf.getAllConfs.keySet -- settings.keySet).foreach(conf.unsetConf)
      settings.foreach { case (key, value) => conf.setConfString(key, value) }
      val active = SparkSession.getActiveSession
      SparkSession.setActiveSession(own)
      try snapshot.stateDS
      finally active.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession)
    }
  }
}
