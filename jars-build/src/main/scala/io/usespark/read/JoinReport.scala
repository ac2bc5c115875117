package io.usespark

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper

/** What the joins of a plan did to the files of its scans. */
object JoinReport extends AdaptiveSparkPlanHelper {

  /** The names of the tables in the other side of a join. */
  def sideOf(side: SparkPlan): String = {
    val tables = collect(side) { case scan: FileSourceScanExec => ScanCounts.ofScan(scan).map(_.table) }.flatten
    if (tables.isEmpty) "rows" else tables.distinct.mkString(", ")
  }

  /** The columns in a key. */
  def nameOf(key: Expression): String = key.references.map(_.name).toSeq.sorted.mkString(", ")
}
