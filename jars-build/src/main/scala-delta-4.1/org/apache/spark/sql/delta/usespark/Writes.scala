package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.delta.DeltaOperations
import org.apache.spark.sql.delta.commands.WriteIntoDelta

/** The entry of a write in the history of its table. */
object Writes {
  def of(write: WriteIntoDelta): DeltaOperations.Operation = {
    val options = write.options
    def known(flag: Boolean): Option[Boolean] = if (flag) Some(true) else None
    DeltaOperations.Write(
      mode = write.mode,
      partitionBy = Option(write.partitionColumns),
      predicate = options.replaceWhere,
      userMetadata = options.userMetadata,
      isDynamicPartitionOverwrite = known(options.isDynamicPartitionOverwriteMode),
      canOverwriteSchema = known(options.canOverwriteSchema),
      canMergeSchema = known(options.canMergeSchema)
    )
  }
}
