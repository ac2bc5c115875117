package org.apache.spark.sql.delta.usespark

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import io.usespark.InheritedProperties
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.util.ThreadUtils

/** Looks at the logs of many tables at once, and loads no snapshot of those that did not change. */
object LogProbe {
  private val Threads = 8

  /**
   * The changes of tables since they were last checked.
   *
   * @param questions JSON array of `location` and `version`; a version of -1 or less loads the table again
   * @return JSON array, in the same order, of `state` (unchanged, changed, missing, failed), and where it changed
   *   `version`, `table_id`, the `configuration` of USE and the names of the `columns`; `detail` where the check failed
   */
  def look(session: SparkSession, questions: String): String = {
    val mapper = new ObjectMapper()
    val tables = mapper.readTree(questions).elements().asScala.toSeq
    val classicSession = session.asInstanceOf[classic.SparkSession]
    val conf = classicSession.sessionState.newHadoopConf()
    val results = mapper.createArrayNode()
    val answers =
      if (tables.sizeIs <= Threads) tables.map(lookAt(classicSession, conf, mapper, _))
      else ThreadUtils.parmap(tables, "use-log-probe", Threads)(lookAt(classicSession, conf, mapper, _))
    answers.foreach(results.add)
    results.toString
  }

  private def lookAt(
      session: classic.SparkSession,
      conf: Configuration,
      mapper: ObjectMapper,
      question: JsonNode
  ): ObjectNode = {
    val answer = mapper.createObjectNode()
    try {
      val path = new Path(question.get("location").asText())
      val known = question.get("version").asLong()
      val next = FileNames.unsafeDeltaFile(new Path(path, "_delta_log"), known + 1)
      if (known >= 0 && !path.getFileSystem(conf).exists(next)) answer.put("state", "unchanged")
      else {
        SparkSession.setActiveSession(session)
        val snapshot = DeltaLog.forTable(session, path).update()
        if (snapshot.version < 0) answer.put("state", "missing")
        else {
          val metadata = snapshot.metadata
          val ours = InheritedProperties.ours(metadata.configuration) ++
            metadata.configuration.filter(_._1 == "qbeast.lastRevisionID")
          answer.put("state", "changed").put("version", snapshot.version).put("table_id", metadata.id)
          answer.set[JsonNode]("configuration", mapper.valueToTree(ours.asJava))
          answer.set[JsonNode]("columns", mapper.valueToTree(metadata.schema.fieldNames))
        }
      }
    } catch { case NonFatal(error) => answer.put("state", "failed").put("detail", String.valueOf(error.getMessage)) }
    answer
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
