package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.delta.DeltaOperations
import org.apache.spark.sql.delta.commands.WriteIntoDelta

/** The entry of a write in the history of its table. */
object Writes {
  def of(write: WriteIntoDelta): DeltaOperations.Operation = {
    val options = write.options
    DeltaOperations.Write(write.mode, Option(write.partitionColumns), options.replaceWhere, options.userMetadata)
  }
}
