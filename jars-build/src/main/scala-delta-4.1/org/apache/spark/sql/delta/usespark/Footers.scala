package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.Dataset
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.StatsCollectionUtils

/** Files with the statistics that Delta takes from their footers. */
object Footers {
  def of(session: SparkSession, snapshot: Snapshot, files: Dataset[AddFile]): Dataset[AddFile] = {
    val log = snapshot.deltaLog
    val prefix = StatsCollectionUtils.getDataSkippingStringPrefixLength(session, snapshot.metadata)
    StatsCollectionUtils.computeStats(session, log.newDeltaHadoopConf(), log, snapshot, files, None, prefix)
  }
}
