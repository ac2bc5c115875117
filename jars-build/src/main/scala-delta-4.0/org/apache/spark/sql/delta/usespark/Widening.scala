package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.{TypeWideningMode, UniversalFormat}
import org.apache.spark.sql.delta.actions.Metadata

/** Which types a write may give to the columns of a table that has type widening. */
object Widening {
  def ofWrites(session: SparkSession, metadata: Metadata): TypeWideningMode =
    TypeWideningMode.TypeEvolution(UniversalFormat.icebergEnabled(metadata))
}
