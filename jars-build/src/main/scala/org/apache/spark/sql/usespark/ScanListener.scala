package org.apache.spark.sql.usespark

import java.util.{Collections, LinkedHashMap => JLinkedHashMap, Map => JMap}

import scala.util.control.NonFatal

import io.usespark.{QueryFacts, ScanQueue, ScanRecords}
import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}

/**
 * Records the scans of finished queries of all sessions. It has a queue of events and a thread for itself, so neither
 * queries nor other listeners wait for it. Until a query of a table with records has been planned, it returns at once.
 */
final class ScanListener(
    private val context: SparkContext,
    private val queue: ScanQueue,
    private val metrics: UseMetrics
) extends SparkListener
    with Logging {
  import ScanListener._

  private val started = bounded[Long, SparkListenerSQLExecutionStart]
  private val thriftUsers = bounded[String, String]
  @volatile private var failed = false

  override def onOtherEvent(event: SparkListenerEvent): Unit =
    try
      event match {
        case start: SparkListenerSQLExecutionStart => if (planned) started.put(start.executionId, start)
        case end: SparkListenerSQLExecutionEnd => if (planned) timed(record(end))
        case other => rememberUser(other)
      }
    catch {
      case NonFatal(error) =>
        if (!failed) logWarning("The scans of a query were not recorded.", error)
        failed = true
    }

  /** Counts the time that records take on the listener's thread. */
  private def timed(work: => Unit): Unit = {
    val began = System.nanoTime()
    try work
    finally metrics.add("recording_microseconds_total", (System.nanoTime() - began) / 1000)
  }

  /** Comes while the application stops, which waits for it: records that are not handed over now are lost. */
  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = if (planned) queue.flush()

  private def record(end: SparkListenerSQLExecutionEnd): Unit = {
    val start = Option(started.remove(end.executionId))
    val hasFailed = end.executionFailure.nonEmpty || end.errorMessage.exists(_.nonEmpty)
    if (end.qe != null && !hasFailed) {
      val session = end.qe.sparkSession
      val conf = session.sessionState.conf
      if (conf.getConfString(RecordingKey, "true").trim.equalsIgnoreCase("true")) {
        val caller = callerOf(start)
        queue.add(
          ScanRecords.of(
            end.qe.executedPlan,
            QueryFacts(
              context.applicationId,
              end.executionId,
              QueryIds.of(end),
              caller.statementId,
              caller.user,
              caller.kind,
              end.time,
              end.duration / 1000000,
              conf.getConfString(LiteralsKey, "false").trim.equalsIgnoreCase("true")
            )
          )
        )
      }
    }
  }

  private def callerOf(start: Option[SparkListenerSQLExecutionStart]): Caller = {
    val connect = start.iterator.flatMap(_.jobTags).collectFirst { case ConnectTag(user, operation) =>
      // A client may name no user.
      Caller(if (user.isEmpty) context.sparkUser else user, "connect", Some(operation))
    }
    val thrift = start.flatMap(_.jobGroupId).flatMap { group =>
      Option(thriftUsers.get(group)).map(user => Caller(user, "thrift", Some(group)))
    }
    connect.orElse(thrift).getOrElse(Caller(context.sparkUser, "batch", start.flatMap(_.jobGroupId)))
  }

  /** Stores the user of a statement of the Thrift server, whose classes may be missing. */
  private def rememberUser(event: SparkListenerEvent): Unit =
    if (event.getClass.getName == ThriftStart) {
      def text(name: String) = String.valueOf(event.getClass.getMethod(name).invoke(event))
      thriftUsers.put(text("groupId"), text("userName"))
    }
}

object ScanListener {
  private val RecordingKey = "spark.qbeast.use.insights.recording"
  private val LiteralsKey = "spark.qbeast.use.insights.literals"
  private val ThriftStart = "org.apache.spark.sql.hive.thriftserver.ui.SparkListenerThriftServerOperationStart"
  private val ConnectTag = "SparkConnect_OperationTag_User_(.*)_Session_.*_Operation_(.*)".r
  private val MaxRemembered = 1000
  @volatile private var planned = false
  @volatile private var registered: Option[ScanListener] = None

  final private case class Caller(user: String, kind: String, statementId: Option[String])

  /** Notes that a query of a table was planned, with its own properties and its database. */
  def noteTable(session: SparkSession, configuration: Map[String, String], database: Option[String]): Unit =
    if (!planned && ScanRecords.isEnabled(session, configuration, database)) planned = true

  /** Registers a listener for all sessions of the application, once. */
  def register(session: SparkSession): Unit = synchronized {
    val context = session.sparkContext
    if (!registered.exists(_.context eq context)) {
      // In a session of its own, so that settings of users do not matter.
      val metrics = UseMetrics.of(session)
      val listener = new ScanListener(context, new ScanQueue(session.newSession(), metrics.add), metrics)
      registered = Some(listener)
      context.listenerBus.addToQueue(listener, "useScans")
    }
  }

  /** Hands over the records of all queries that have ended. */
  def flush(session: SparkSession): Unit =
    if (planned && !session.sparkContext.isStopped) {
      session.sparkContext.listenerBus.waitUntilEmpty()
      registered.foreach(_.queue.flush())
    }

  private def bounded[K, V]: JMap[K, V] = Collections.synchronizedMap(new JLinkedHashMap[K, V]() {
    override def removeEldestEntry(eldest: JMap.Entry[K, V]): Boolean = size() > MaxRemembered
  })
}
