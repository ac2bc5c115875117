package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.delta.{CheckpointProvider, DeltaLog}

/** The number of files of a checkpoint, sidecar files among them. */
object CheckpointFiles {
  def count(session: SparkSession, log: DeltaLog, checkpoint: CheckpointProvider): Int =
    if (checkpoint.isEmpty) 0
    else checkpoint.allActionsFileIndexesAndSchemas(session, log).map(_._1.inputFiles.length).sum
}
