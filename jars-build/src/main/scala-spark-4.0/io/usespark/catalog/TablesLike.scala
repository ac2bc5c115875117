package io.usespark

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.delta.catalog.DeltaCatalog

/** CREATE TABLE … LIKE; before Spark 4.2 a command that `IndexedWriteRules` checks. */
trait TablesLike extends DeltaCatalog {
  protected def notifying(make: => Table): Table
}
