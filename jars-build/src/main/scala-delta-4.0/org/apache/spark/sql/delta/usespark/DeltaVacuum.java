package org.apache.spark.sql.delta.usespark;

import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.SerializableFileStatus;
import org.apache.spark.sql.delta.commands.VacuumCommand$;
import org.apache.spark.util.SerializableConfiguration;

/** A member of Delta's vacuum that is protected for the Scala compiler only. */
final class VacuumAccess {
  private VacuumAccess() {}

  static Dataset<SerializableFileStatus> removals(
      SparkSession session,
      DeltaLog log,
      String root,
      Broadcast<SerializableConfiguration> conf,
      long first,
      long last) {
    return VacuumCommand$.MODULE$.getFilesFromDeltaLog(session, log, root, conf, first, last);
  }
}
