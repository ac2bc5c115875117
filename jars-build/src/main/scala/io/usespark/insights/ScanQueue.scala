package io.usespark

import java.util.concurrent.ArrayBlockingQueue
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession

/**
 * Records that wait until a thread hands them to Python, which writes them. The queue is bounded: if it is full, records
 * are dropped and counted. No query waits for it, and an error loses the records of one batch.
 */
final class ScanQueue extends Logging {
  private val Capacity = 10000
  private val PauseMillis = 5000L

  private val waiting = new ArrayBlockingQueue[ScanRecord](Capacity)
  private val dropped = new AtomicLong()
  private val writing = new Object
  @volatile private var failed = false
  private lazy val writer = {
    val thread = new Thread(() => write(), "use-scan-records")
    thread.setDaemon(true)
    thread.start()
    thread
  }

  def add(records: Seq[ScanRecord]): Unit =
    if (records.nonEmpty) {
      records.foreach(record => if (!waiting.offer(record)) dropped.incrementAndGet())
      writer
    }

  /** Hands over what waits now. */
  def flush(): Unit = writing.synchronized {
    val batch = ArrayBuffer[ScanRecord]()
    waiting.drainTo(batch.asJava)
    val lost = dropped.getAndSet(0)
    if (lost > 0) logWarning(s"$lost records of scans were dropped, because more than $Capacity were waiting.")
    batch.groupBy(_.location).foreach { case (location, records) => send(location, records.map(_.line).toSeq) }
  }

  private def send(location: String, lines: Seq[String]): Unit =
    try {
      val session = SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession)
      session.filterNot(_.sparkContext.isStopped).foreach { session =>
        SparkSession.setActiveSession(session)
        val arguments = Map("location" -> location, "lines" -> lines.mkString("\n"))
        Python.text(Operation.SCANS_RECORDED, arguments)
      }
    } catch {
      case NonFatal(error) =>
        if (!failed) logWarning(s"Records of scans are lost, the first time of $location: $error")
        failed = true
    }

  private def write(): Unit =
    while (true) {
      Thread.sleep(PauseMillis)
      try flush()
      finally SparkSession.clearActiveSession()
    }
}
