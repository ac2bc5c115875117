package io.usespark

import com.fasterxml.jackson.databind.ObjectMapper

/**
 * What the keys of the source of a MERGE may cost; Python has the settings and their defaults.
 *
 * @param enabled whether a MERGE looks only for keys of its source
 * @param keys rows of a source; of more, only the range of the keys is used
 * @param bytes of a target from which a job may read the keys for it
 * @param ranges of one key
 */
final case class MergeLimits(enabled: Boolean, keys: Int, bytes: Long, ranges: Int)

object MergeLimits {

  /** The limits of the active session. */
  def ofSession: MergeLimits = {
    val answer = Python.text(Operation.MERGE_LIMITS, Map.empty)
    val json = new ObjectMapper().readTree(answer.getOrElse("{}"))
    MergeLimits(
      json.required("enabled").asBoolean,
      json.required("keys").asInt,
      json.required("bytes").asLong,
      json.required("ranges").asInt
    )
  }
}
