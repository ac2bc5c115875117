package io.usespark

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Cast, EvalMode, Expression, Literal}
import org.apache.spark.sql.delta.{DeltaColumnMapping, Snapshot}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

/**
 * The value of a partition column in each file, which the log has as text.
 *
 * @param storedName the name of the column in the log.
 * @param dataType of the column.
 * @param timeZone in which the log has instants, unless they name another.
 */
final private[usespark] class PartitionKeys private (storedName: String, dataType: DataType, timeZone: String) {
  private val values = mutable.HashMap.empty[String, Any]

  /** Whether a file can hold a value for which a test of bounds is true; a file of which the log has no value can. */
  def meets(file: AddFile, test: (Any, Any) => Boolean): Boolean = !file.partitionValues.contains(storedName) || {
    val value = of(file)
    // A join that drops rows without a match drops those whose column is null.
    value != null && test(value, value)
  }

  private def of(file: AddFile): Any = {
    val text = file.partitionValues.getOrElse(storedName, null)
    if (text == null) null
    else values.getOrElseUpdate(text, Cast(Literal(text), dataType, Some(timeZone), EvalMode.LEGACY).eval())
  }

  /** The share of the files' bytes that one value leaves, on average. */
  def oneKeyShare(files: Seq[AddFile]): Double = 1.0 / math.max(files.iterator.map(of).toSet.size, 1)
}

private[usespark] object PartitionKeys {

  /** Those of a column; None if it is no partition column. */
  def of(snapshot: Snapshot, column: Expression): Option[PartitionKeys] = column match {
    case attribute: AttributeReference =>
      val conf = SQLConf.get
      snapshot.metadata.partitionSchema
        .find(field => conf.resolver(field.name, attribute.name))
        .map(field =>
          new PartitionKeys(DeltaColumnMapping.getPhysicalName(field), field.dataType, conf.sessionLocalTimeZone)
        )
    case _ => None
  }
}
