package io.usespark

import java.nio.charset.StandardCharsets
import java.util.UUID
import java.util.concurrent.ArrayBlockingQueue
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileUtil, Path}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession

/**
 * Records that wait until a thread hands them to Python, which writes them. The queue is bounded: if it is full, records
 * are dropped and counted. No query waits for it, and an error loses the records of one batch.
 *
 * @param session in which Python writes. The default session is gone while the application ends.
 * @param count adds to a metric of the application.
 */
final class ScanQueue(session: SparkSession, count: (String, Long) => Unit) extends Logging {
  private val Capacity = 10000
  private val PauseMillis = 5000L

  private val conf = session.sessionState.newHadoopConf()
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
      records.foreach { record =>
        count("recorded_scans_total", 1)
        count("recorded_read_bytes_total", record.readBytes)
        record.skippedBytes.foreach { case (step, bytes) => count(s"recorded_skipped_bytes_total.$step", bytes) }
      }
      writer
    }

  /** Hands over what waits now. */
  def flush(): Unit = writing.synchronized {
    val batch = ArrayBuffer[ScanRecord]()
    waiting.drainTo(batch.asJava)
    val lost = dropped.getAndSet(0)
    if (lost > 0) {
      logWarning(s"$lost records of scans were dropped, because more than $Capacity were waiting.")
      count("dropped_records_total", lost)
    }
    batch.groupBy(_.location).foreach { case (location, records) => send(location, records.map(_.line).toSeq) }
  }

  private def send(location: String, lines: Seq[String]): Unit =
    try
      if (session.sparkContext.isStopped) writeFile(location, lines)
      else
        ActiveSession.within(session) {
          Python.text(Operation.SCANS_RECORDED, Map("location" -> location, "lines" -> lines.mkString("\n")))
        }
    catch {
      case NonFatal(error) =>
        if (!failed) logWarning(s"Records of scans are lost, the first time of $location: $error")
        failed = true
    }

  /** Stores records as Python does, because Spark allows no call of Python once the application ends. */
  private def writeFile(location: String, lines: Seq[String]): Unit = {
    val name = s"${System.currentTimeMillis()}-${lines.size}-${UUID.randomUUID().toString.replace("-", "")}.json"
    val file = new Path(location, s"_use/consumption/$name")
    FileUtil.write(file.getFileSystem(conf), file, lines.mkString("\n").getBytes(StandardCharsets.UTF_8))
  }

  private def write(): Unit =
    while (!session.sparkContext.isStopped) {
      Thread.sleep(PauseMillis)
      flush()
    }
}
