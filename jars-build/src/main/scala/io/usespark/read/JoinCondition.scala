package io.usespark

import java.time.ZoneOffset

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{NormalizeNaNAndZero, UnwrapCastInBinaryComparison}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.usespark.ColumnBounds
import org.apache.spark.sql.types._

/**
 * What the keys of a join demand of one column of a scan.
 *
 * @param key the key of the scan's side: the column, or a cast of it.
 * @param column the column.
 * @param ranges of the key.
 */
final case class JoinCondition(key: Expression, column: Expression, ranges: KeyRanges) {

  /** As a filter of the rows of the scan. */
  lazy val filter: Expression = filterOf(ranges)

  /** As a filter of files by bounds of which none replaces invalid bytes, such as the values of partitions. */
  lazy val fileFilter: Expression = filterOf(ofStatistics)

  /** As a filter of files by bounds in which U+FFFD may replace invalid bytes; None if it selects all. */
  lazy val replacedFilter: Option[Expression] = ofStatistics.withAsciiEnds.map(filterOf)

  private lazy val ofStatistics = ranges.ofStatistics(column.dataType)

  /** Spark turns comparisons of casts into comparisons of the column where that is exact. */
  private def filterOf(ranges: KeyRanges): Expression = {
    val condition = ranges.condition(key)
    val relation = LocalRelation(condition.references.toSeq)
    UnwrapCastInBinaryComparison(Filter(condition, relation)) match {
      case Filter(unwrapped, _) => unwrapped
      case _ => condition
    }
  }

  /** The files whose statistics do not exclude every key. */
  def select(files: Seq[AddFile], bounds: ColumnBounds): Seq[AddFile] =
    files.filter(file => bounds.meets(file.path, isMet))

  /** The files whose partitions have a key. */
  def select(files: Seq[AddFile], partitions: PartitionKeys): Seq[AddFile] =
    files.filter(file => partitions.meets(file, isMet))

  private def isMet(low: Any, high: Any): Boolean = (low, high) match {
    case (number: Double, _) if number.isNaN => true
    case (number: Float, _) if number.isNaN => true
    case _ => ofStatistics.meets(asKey(low), asKey(high))
  }

  private def asKey(value: Any): Any =
    if (key eq column) value
    else key.transform { case part if part eq column => Literal(value, column.dataType) }.eval()
}

object JoinCondition {

  /**
   * The condition of a key.
   *
   * @param values the values of the key on the other side, or the code of the reason why they are not known; they are not
   *   asked for if they do not help.
   * @param maxRanges number of ranges.
   * @return the code of a reason if there is none.
   */
  def of(key: JoinKey, values: JoinKey => Either[String, Array[Any]], maxRanges: Int): Either[String, JoinCondition] =
    key.refusal.toLeft(()).flatMap(_ => ofValues(key.value, key.keys(key.position).dataType, values(key), maxRanges))

  /**
   * The condition of a key.
   *
   * @param key an expression of the columns of a scan.
   * @param dataType of the values.
   * @param values the values that are equal to it; None if they are too many.
   * @param maxRanges number of ranges.
   * @return the code of a reason if there is none.
   */
  def of(
      key: Expression,
      dataType: DataType,
      values: => Option[Array[Any]],
      maxRanges: Int
  ): Either[String, JoinCondition] = ofValues(key, dataType, values.toRight("TOO_MANY_KEYS"), maxRanges)

  private def ofValues(
      key: Expression,
      dataType: DataType,
      values: => Either[String, Array[Any]],
      maxRanges: Int
  ): Either[String, JoinCondition] =
    for {
      column <- column(key).toRight("NOT_A_COLUMN")
      _ <- Either.cond(KeyRanges.supports(dataType), (), "UNSUPPORTED_TYPE")
      known <- values
      ranges <- KeyRanges.of(known, dataType, maxRanges)
    } yield plain(key) match {
      case cast @ Cast(_, DateType, _, _) => JoinCondition(column, column, instants(ranges, column.dataType, cast))
      case value => JoinCondition(value, column, ranges)
    }

  /** The instants of days, with a day on either side: clocks that are set back at midnight return to the day before. */
  private def instants(days: KeyRanges, dataType: DataType, cast: Cast): KeyRanges = {
    val zone = if (dataType == TimestampType) cast.zoneId else ZoneOffset.UTC
    def startOf(day: Int): Any = DateTimeUtils.daysToMicros(day, zone)
    days.copy(
      dataType = dataType,
      ranges = days.ranges.collect { case (first: Int, last: Int) => startOf(first - 1) -> startOf(last + 2) }
    )
  }

  /** The column in a key, which may be normalized or cast to a type of the same order; None for anything else. */
  def column(key: Expression): Option[Expression] = key match {
    case column @ (_: Attribute | _: GetStructField) => if (isColumn(column)) Some(column) else None
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(inner)) => column(inner)
    case Cast(inner, to, _, _) if keepsOrder(inner.dataType, to) => column(inner)
    case _ => None
  }

  /** The key without what makes different bits of one number equal. */
  def plain(key: Expression): Expression = key.transform {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(inner)) => inner
  }

  /** Facts about files, such as their names, are no columns, although they may have the name of one. */
  private def isColumn(expression: Expression): Boolean = expression match {
    case MetadataAttribute(_) => false
    case _: Attribute => true
    case field: GetStructField => isColumn(field.child)
    case _ => false
  }

  private def keepsOrder(from: DataType, to: DataType): Boolean = (from, to) match {
    case (_: DecimalType, DoubleType | FloatType) => true
    case (_: NumericType, _: NumericType) => Cast.canUpCast(from, to)
    case (TimestampType | TimestampNTZType, DateType) => true
    case _ => false
  }
}
