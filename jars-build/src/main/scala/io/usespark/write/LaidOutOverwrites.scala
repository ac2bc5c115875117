package io.usespark

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.delta.DeltaTable
import org.apache.spark.sql.delta.sources.DeltaSink
import org.apache.spark.sql.delta.usespark.{IndexedWrite, Statements}
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.InsertableRelation

/** Delta's INSERT, whose rows are laid out where they replace others. */
final class LaidOutWriteBuilder(delta: WriteBuilder)
    extends WriteBuilder
    with SupportsOverwriteV2
    with SupportsTruncate
    with SupportsDynamicOverwrite {
  private var overwrites = false

  override def canOverwrite(predicates: Array[Predicate]): Boolean = delta match {
    case overwriting: SupportsOverwriteV2 => overwriting.canOverwrite(predicates)
    case _ => false
  }

  override def overwrite(predicates: Array[Predicate]): WriteBuilder = changed {
    delta.asInstanceOf[SupportsOverwriteV2].overwrite(predicates)
  }
  override def truncate(): WriteBuilder = changed(delta.asInstanceOf[SupportsTruncate].truncate())
  override def overwriteDynamicPartitions(): WriteBuilder = changed {
    delta.asInstanceOf[SupportsDynamicOverwrite].overwriteDynamicPartitions()
  }

  override def build(): Write = delta.build() match {
    case insert: V1Write if overwrites =>
      new V1Write {
        override def toInsertableRelation(): InsertableRelation = {
          val relation = insert.toInsertableRelation()
          (rows: DataFrame, overwrite: Boolean) => Statements.overwriting(relation.insert(rows, overwrite))
        }
      }
    case other => other
  }

  /** Delta's builder changes itself. */
  private def changed(same: => WriteBuilder): WriteBuilder = {
    same
    overwrites = true
    this
  }
}

/** Delta's sink of a stream that writes its whole result with each batch. */
final case class LaidOutSink(delta: DeltaSink) extends Sink {
  override def addBatch(batchId: Long, data: DataFrame): Unit = {
    val readsItself = data.queryExecution.analyzed.collectFirst {
      case DeltaTable(index) if index.path == delta.path => true
    }.nonEmpty
    // Delta looks for its own table in the plan, which a batch hides.
    if (readsItself) delta.addBatch(batchId, data)
    else Statements.overwriting(delta.addBatch(batchId, IndexedWrite.batch(data)))
  }

  override def toString: String = delta.toString
}
