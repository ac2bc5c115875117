package io.usespark

import org.apache.spark.sql.connector.catalog.StagedTable

/** The constraints of a staged table, which Spark 4.0 does not have. */
trait StagedConstraints extends StagedTable {
  protected def staged: StagedTable
}
