package io.usespark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.LocalScan
import org.apache.spark.sql.types.StructType

/** Rows that Python has computed, as a scan; `data` is evaluated when the scan is executed. */
final class RowsScan(schema: StructType, data: () => Array[InternalRow], name: String) extends LocalScan {
  override def readSchema(): StructType = schema
  override def rows(): Array[InternalRow] = data()
  override def description(): String = name
}
