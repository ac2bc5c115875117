package org.apache.spark.sql.usespark

import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** The id that Spark gives a query; None before Spark 4.2. */
object QueryIds {
  def of(end: SparkListenerSQLExecutionEnd): Option[String] = end.queryId.map(_.toString)
}
