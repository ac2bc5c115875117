package org.apache.spark.sql.delta.usespark

import java.io.{FileNotFoundException, InputStream}
import java.util.concurrent._

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import io.usespark.InheritedProperties
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.util.ThreadUtils

/** Looks at the logs of many tables at once, and keeps no snapshot of a table whose writers leave checksums. */
object LogProbe {

  /** Of each file system: one that does not answer keeps its own threads only. */
  private val Threads = 16

  /** Log files that are looked for one by one; beyond them, Delta lists the log. */
  private val MaxSteps = 100
  private val SchemeAndServer = "^[^/]*(//[^/]*)?".r
  private val mapper = new ObjectMapper()
  private val pools = new ConcurrentHashMap[String, ThreadPoolExecutor]()
  private val hanging = new ConcurrentHashMap[String, Look]()

  /**
   * The changes of tables since they were last checked.
   *
   * @param questions JSON array of arrays: location; version, where -1 or less loads the table again; time at which the
   *   log file of this version was written, -1 to trust that it is still the same
   * @param millis when the look ends, whatever has not answered by then
   * @return JSON array of the tables that are not unchanged: `index` of the question, `state` (changed, missing, failed,
   *   late: not looked at yet), and where it changed `version`, `modified`, `table_id`, the `configuration` of USE and
   *   the names of the `columns`; `detail` where the check failed
   */
  def look(session: SparkSession, questions: String, millis: Long): String = {
    val classicSession = session.asInstanceOf[classic.SparkSession]
    val conf = classicSession.sessionState.newHadoopConf()
    hanging.values().removeIf(_.isEnded)
    // Without a free thread, all others of the file system would wait until the end.
    val hangingByStore = hanging.values().asScala.groupBy(_.store.name)
    val stores = mutable.HashMap.empty[String, Store]
    val looks = mapper
      .readTree(questions)
      .elements()
      .asScala
      .map { question =>
        val name = SchemeAndServer.findFirstIn(question.get(0).asText()).getOrElse("")
        new Look(classicSession, stores.getOrElseUpdate(name, new Store(name, conf)), question)
      }
      .toVector
    val asked = looks.filter(look => !look.isHanging && hangingByStore.get(look.store.name).forall(_.size < Threads))
    val latch = new CountDownLatch(asked.size)
    val queues = asked.groupBy(_.store).map { case (store, looks) => store -> new ConcurrentLinkedQueue(looks.asJava) }
    for ((store, queue) <- queues; _ <- 1 to math.min(Threads, queue.size)) poolOf(store.name).execute { () =>
      Iterator.continually(queue.poll()).takeWhile(_ != null).foreach { look =>
        look.run()
        latch.countDown()
      }
    }
    latch.await(millis, TimeUnit.MILLISECONDS)
    queues.values.foreach(_.clear())
    val results = mapper.createArrayNode()
    for ((look, index) <- looks.zipWithIndex; answer <- look.answer(millis)) results.add(answer.put("index", index))
    results.toString
  }

  private def poolOf(store: String): ThreadPoolExecutor =
    pools.computeIfAbsent(store, _ => ThreadUtils.newDaemonCachedThreadPool("use-log-probe", Threads, 10))

  /** A file system in one look. Its own threads look it up, because its server may not answer. */
  final private class Store(val name: String, conf: Configuration) {
    @volatile private var kept: FileSystem = _

    def files(path: Path): FileSystem = {
      if (kept == null) kept = path.getFileSystem(conf)
      kept
    }
  }

  /** The look at one table, in a thread of its file system. */
  final private class Look(session: classic.SparkSession, val store: Store, question: JsonNode) {
    private val location = question.get(0).asText()
    private lazy val path = new Path(location)
    private lazy val log = new Path(path, "_delta_log")
    @volatile private var began = 0L
    @volatile private var result: Option[Option[ObjectNode]] = None

    def isEnded: Boolean = result.isDefined

    /** A location whose earlier look hangs would only keep one more thread. */
    val isHanging: Boolean = hanging.containsKey(location)

    def answer(millis: Long): Option[ObjectNode] = {
      val seconds = (System.nanoTime() - began) / 1e9
      result.getOrElse {
        if (began != 0) hanging.put(location, this)
        if (isHanging) failed("an earlier look at it has not ended")
        else if (began != 0 && seconds > millis / 2000.0) failed(f"no answer within $seconds%.1f s")
        else state("late")
      }
    }

    def run(): Unit = {
      began = System.nanoTime()
      // Whatever it throws, the look has ended.
      result = Some(
        try compared(question.get(1).asLong(), question.get(2).asLong())
        catch { case error: Throwable => failed(String.valueOf(error.getMessage)) }
      )
    }

    private def compared(known: Long, modified: Long): Option[ObjectNode] = {
      val files = store.files(path)
      val isSame = known >= 0 && (modified < 0 || modifiedAt(files, known).contains(modified))
      if (isSame && !files.exists(commit(known + 1))) None
      else {
        val first = if (isSame) known else lastCheckpoint(files)
        val newest = Iterator.range(first, first + MaxSteps).find(version => !files.exists(commit(version + 1)))
        newest.flatMap(withChecksum(files, _)).orElse(loaded(files))
      }
    }

    /** What Delta noted of a version when it was committed; None if its writer notes nothing. */
    private def withChecksum(files: FileSystem, version: Long): Option[ObjectNode] =
      for {
        modified <- modifiedAt(files, version)
        metadata <- read(files, FileNames.checksumFile(log, version), "/metadata")
        if metadata.path("id").isTextual && metadata.path("schemaString").isTextual
      } yield {
        val properties = metadata.path("configuration").properties().asScala.map(e => e.getKey -> e.getValue.asText())
        val schema = mapper.readTree(metadata.get("schemaString").asText())
        val columns = schema.path("fields").elements().asScala.map(_.path("name").asText())
        changed(version, modified, metadata.get("id").asText(), properties.toMap, columns.toSeq)
      }

    private def loaded(files: FileSystem): Option[ObjectNode] = {
      SparkSession.setActiveSession(session)
      val snapshot = DeltaLog.forTable(session, path).update()
      if (snapshot.version < 0) state("missing")
      else {
        val metadata = snapshot.metadata
        val modified = modifiedAt(files, snapshot.version).getOrElse(-1L)
        Some(changed(snapshot.version, modified, metadata.id, metadata.configuration, metadata.schema.fieldNames.toSeq))
      }
    }

    private def changed(
        version: Long,
        modified: Long,
        id: String,
        configuration: Map[String, String],
        columns: Seq[String]
    ): ObjectNode = {
      val answer = mapper.createObjectNode().put("state", "changed")
      answer.put("version", version).put("modified", modified).put("table_id", id)
      val ours = InheritedProperties.ours(configuration) ++ configuration.filter(_._1 == "qbeast.lastRevisionID")
      answer.set[JsonNode]("configuration", mapper.valueToTree(ours.asJava))
      answer.set[JsonNode]("columns", mapper.valueToTree(columns.asJava))
      answer
    }

    private def state(name: String): Option[ObjectNode] = Some(mapper.createObjectNode().put("state", name))

    private def failed(detail: String): Option[ObjectNode] = state("failed").map(_.put("detail", detail))

    private def commit(version: Long): Path = FileNames.unsafeDeltaFile(log, version)

    private def modifiedAt(files: FileSystem, version: Long): Option[Long] =
      try Some(files.getFileStatus(commit(version)).getModificationTime)
      catch { case _: FileNotFoundException => None }

    private def lastCheckpoint(files: FileSystem): Long =
      read(files, new Path(log, "_last_checkpoint"), "/version").fold(0L)(_.asLong())

    private def read(files: FileSystem, file: Path, pointer: String): Option[JsonNode] =
      try Option(Using.resource(files.open(file))(mapper.reader().at(pointer).readTree(_: InputStream)))
      catch { case NonFatal(_) => None }
  }

  /**
   * How many commits are newer than the newest one of `operation`.
   *
   * @param after commits up to this version do not count
   * @param most counting ends here
   */
  def commitsSince(session: SparkSession, location: String, operation: String, after: Long, most: Int): Int = {
    val log = DeltaLog.forTable(session.asInstanceOf[classic.SparkSession], new Path(location))
    val newest = log.update().version
    val oldest = math.max(after + 1, newest - most + 1)
    if (oldest > newest) 0
    else log.history.getHistory(oldest, Some(newest), None).takeWhile(_.operation != operation).size
  }
}
