package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.{Column, DataFrame, SaveMode}
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.ExpressionUtils.column
import org.apache.spark.sql.delta.{DeltaErrors, DeltaOptions, Snapshot, TypeWidening, TypeWideningMode}
import org.apache.spark.sql.delta.UpdateExpressionsSupport
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.types.{NullType, StructType}

/** Rows of a stream as Delta's sink would take them. */
object StreamRows {

  /**
   * Casts columns to the types that the table has for them, or will have where the write may widen them. As in Delta's own
   * sink, a value that does not fit fails the batch by the policy of store assignments; new columns stay as they are.
   */
  def fitting(data: DataFrame, snapshot: Snapshot, options: DeltaOptions, mode: SaveMode): DataFrame = {
    if (data.schema.existsRecursively(_ == NullType)) throw DeltaErrors.streamWriteNullTypeException
    val overwritesSchema = mode == SaveMode.Overwrite && options.canOverwriteSchema
    if (snapshot.version < 0 || overwritesSchema) return data
    val widening =
      if (options.canMergeSchema && TypeWidening.isEnabled(snapshot.protocol, snapshot.metadata))
        Widening.ofWrites(data.sparkSession, snapshot.metadata)
      else TypeWideningMode.NoTypeWidening
    val merged = SchemaMergingUtils.mergeSchemas(
      snapshot.metadata.schema,
      data.schema,
      allowImplicitConversions = true,
      typeWideningMode = widening
    )
    data.select(new StreamCasts().columns(data, merged): _*)
  }
}

/** A class, because methods of an object are static ones, which clients of a server could call. */
final private class StreamCasts extends UpdateExpressionsSupport {

  /** The columns of rows, cast where a table has another type for them. */
  def columns(data: DataFrame, table: StructType): Seq[Column] =
    data.queryExecution.analyzed.output.map { attribute =>
      table.find(_.name.equalsIgnoreCase(attribute.name)).map(_.dataType) match {
        case Some(known) if !DataTypeUtils.equalsIgnoreCaseAndNullability(known, attribute.dataType) =>
          val cast = castIfNeeded(attribute, known, CastByName(allowMissingStructField = true), attribute.name)
          column(Alias(cast, attribute.name)())
        case _ => column(attribute)
      }
    }
}
