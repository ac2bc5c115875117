package io.usespark

import org.apache.spark.sql.connector.catalog.StagedTable
import org.apache.spark.sql.connector.catalog.constraints.Constraint

/** The constraints of a staged table. */
trait StagedConstraints extends StagedTable {
  protected def staged: StagedTable
  override def constraints(): Array[Constraint] = staged.constraints()
}
