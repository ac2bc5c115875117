package org.apache.spark.sql.delta.usespark

import org.apache.spark.sql.{Column, DataFrame, SaveMode}
import org.apache.spark.sql.delta.{DeltaErrors, DeltaOptions, Snapshot}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.{ArrayType, MapType, NullType, StructField, StructType}

/** Rows of a stream as Delta's sink would take them. */
object StreamRows {

  /** Casts columns to the types that the table has for them, as Delta's own sink does; new columns stay as they are. */
  def fitting(data: DataFrame, snapshot: Snapshot, options: DeltaOptions, mode: SaveMode): DataFrame = {
    if (data.schema.existsRecursively(_ == NullType)) throw DeltaErrors.streamWriteNullTypeException
    val overwritesSchema = mode == SaveMode.Overwrite && options.canOverwriteSchema
    if (snapshot.version < 0 || overwritesSchema) return data
    val columns: Seq[Column] = data.schema.map { field =>
      val name = "`" + field.name.replace("`", "``") + "`"
      snapshot.schema.find(_.name.equalsIgnoreCase(field.name)) match {
        case Some(known) if known.dataType.asNullable != field.dataType.asNullable && simple(known) && simple(field) =>
          col(name).cast(known.dataType).as(field.name)
        case _ => col(name)
      }
    }
    data.select(columns: _*)
  }

  // Nested types are left to Delta, which knows how their fields evolve.
  private def simple(field: StructField): Boolean = field.dataType match {
    case _: StructType | _: ArrayType | _: MapType => false
    case _ => true
  }
}
