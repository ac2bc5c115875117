package io.usespark

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{SparkSession, classic}

/**
 * What joins may cost; Python has the settings and their defaults.
 *
 * @param enabled whether joins skip files at all.
 * @param keys of a side; of more, no ranges are made.
 * @param bytes of a scan from which a job may read statistics or keys for it.
 * @param startsJobs whether a job may collect the keys of a side that is shuffled.
 * @param ranges of one key.
 * @param boxes product of the ranges of all joins of a scan.
 */
final case class JoinLimits(
    enabled: Boolean,
    keys: Long,
    bytes: Long,
    startsJobs: Boolean,
    ranges: Int,
    boxes: Int
)

object JoinLimits {

  /** The limits of a session; without the application, joins skip nothing. */
  def of(session: SparkSession): JoinLimits =
    if (!Python.attached) JoinLimits(enabled = false, 0, Long.MaxValue, startsJobs = false, 0, 0)
    else {
      val answer =
        Python.text(Operation.JOIN_LIMITS, Map.empty, session.asInstanceOf[classic.SparkSession]).getOrElse("{}")
      val json = new ObjectMapper().readTree(answer)
      JoinLimits(
        json.required("enabled").asBoolean,
        json.required("keys").asLong,
        json.required("bytes").asLong,
        json.required("job_share").asDouble > 0,
        json.required("ranges").asInt,
        json.required("boxes").asInt
      )
    }
}
