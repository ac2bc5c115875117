package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.delta.{CheckpointProvider, DeltaLog, FileBasedCheckpointProvider}

/** The number of files of a checkpoint, sidecar files among them. */
object CheckpointFiles {
  def count(session: SparkSession, log: DeltaLog, checkpoint: CheckpointProvider): Int =
    checkpoint match {
      case files: FileBasedCheckpointProvider if !files.isEmpty =>
        files.allActionsFileIndexesAndSchemas(session, log).map(_._1.inputFiles.length).sum
      case _ => 0
    }
}
