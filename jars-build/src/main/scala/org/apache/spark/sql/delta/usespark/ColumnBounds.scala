package org.apache.spark.sql.delta.usespark

import java.util.{Collections, HashMap => JHashMap, Map => JMap, WeakHashMap}

import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.execution.usespark.OwnQueries
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The smallest and the largest value of one column in each file of a version, by path, as Delta's statistics have them.
 *
 * They are read in one job and kept for as long as Delta keeps the version, so only the first query of a version pays.
 */
final class ColumnBounds private (bounds: JMap[String, (Any, Any)]) {

  /** Whether a file can hold a value for which a test of bounds is true; a file without bounds can. */
  def meets(path: String, test: (Any, Any) => Boolean): Boolean = {
    val known = bounds.get(path)
    known == null || test(known._1, known._2)
  }
}

object ColumnBounds {
  private val kept = Collections.synchronizedMap(new WeakHashMap[Snapshot, Map[Seq[String], ColumnBounds]]())

  /**
   * The bounds of a column.
   *
   * @param column the physical names of the column and of the structs around it, from the outermost.
   * @param mayRead whether a job may read them, if no query has read them before.
   * @return None if they are not kept and may not be read, or if Delta collects none of this column.
   */
  def of(snapshot: Snapshot, column: Seq[String], mayRead: Boolean): Option[ColumnBounds] = {
    val known = kept.getOrDefault(snapshot, Map.empty)
    known.get(column).orElse {
      if (!mayRead) None
      else
        read(snapshot, column).map { bounds =>
          kept.merge(snapshot, Map(column -> bounds), (old, added) => old ++ added)
          bounds
        }
    }
  }

  private def read(snapshot: Snapshot, column: Seq[String]): Option[ColumnBounds] = {
    def named(kind: String) = col(
      (Seq("stats", kind) ++ column).map(name => s"`${name.replace("`", "``")}`").mkString(".")
    )
    val files = snapshot.withStats
    // A column without statistics has no field.
    Try(files.select(col("path"), named("minValues"), named("maxValues"))).toOption.map { selected =>
      val bounds = new JHashMap[String, (Any, Any)]()
      val dataType = selected.schema(2).dataType
      OwnQueries.described(files.sparkSession.sparkContext, s"USE statistics of ${column.mkString(".")}") {
        selected.queryExecution.executedPlan.executeCollect().foreach { row =>
          if (!row.isNullAt(1) && !row.isNullAt(2))
            bounds.put(row.getString(0), value(row, 1, dataType) -> highest(value(row, 2, dataType), dataType))
        }
      }
      new ColumnBounds(bounds)
    }
  }

  private def value(row: InternalRow, position: Int, dataType: DataType): Any = row.get(position, dataType) match {
    case text: UTF8String => text.clone()
    case other => other
  }

  /** Delta cuts instants to milliseconds. */
  private def highest(value: Any, dataType: DataType): Any = (value, dataType) match {
    case (micros: Long, TimestampType | TimestampNTZType) => micros + 999
    case _ => value
  }
}
