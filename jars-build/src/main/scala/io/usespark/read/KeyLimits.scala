package io.usespark

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.usespark.SessionSettings

/**
 * What keys of joins and of the sources of MERGE may cost; Python has the settings and their defaults.
 *
 * @param enabled whether keys skip files at all
 * @param keys of a side; of more, a join makes no ranges, and a MERGE one
 * @param bytes of a scan from which a job may read statistics or keys for it
 * @param startsJobs whether a job may collect the keys of a side that is shuffled
 * @param ranges of one key
 * @param boxes product of the ranges of all joins of a scan
 * @param mergeBytes of the target of a MERGE from which a job may read the keys for it
 * @param mergeRanges of one key of a MERGE
 */
final case class KeyLimits(
    enabled: Boolean,
    keys: Int,
    bytes: Long,
    startsJobs: Boolean,
    ranges: Int,
    boxes: Int,
    mergeBytes: Long,
    mergeRanges: Int
)

object KeyLimits {
  private val Nothing = KeyLimits(enabled = false, 0, Long.MaxValue, startsJobs = false, 0, 0, Long.MaxValue, 0)

  private val mapper = new ObjectMapper()

  // Each stage of a query asks, and Python says the same as long as the settings are the same.
  @volatile private var last: Option[(String, KeyLimits)] = None

  /** The limits of a session; without the application, keys skip nothing. */
  def of(session: SparkSession): KeyLimits =
    if (!Python.attached) Nothing
    else {
      val settings = SessionSettings.json(session)
      last.collect { case (`settings`, limits) => limits }.getOrElse {
        val limits = asked(session.asInstanceOf[classic.SparkSession], settings)
        last = Some(settings -> limits)
        limits
      }
    }

  private def asked(session: classic.SparkSession, settings: String): KeyLimits = {
    val answer = Python.text(Operation.KEY_LIMITS, Map("settings" -> settings), session)
    val json = mapper.readTree(answer.getOrElse("{}"))
    KeyLimits(
      json.required("enabled").asBoolean,
      json.required("keys").asInt,
      json.required("bytes").asLong,
      json.required("job_share").asDouble > 0,
      json.required("ranges").asInt,
      json.required("boxes").asInt,
      json.required("merge_bytes").asLong,
      json.required("merge_ranges").asInt
    )
  }
}
