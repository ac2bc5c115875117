package org.apache.spark.sql.delta.usespark

import scala.util.{Left, Right}
import scala.util.control.NonFatal

import io.usespark.{JoinCondition, JoinSide, KeyLimits, MergeSources, UseException}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.delta.{DataFrameUtils, Snapshot}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.execution.usespark.OwnQueries
import org.apache.spark.sql.functions.col

/**
 * The conditions that the keys of the source of a MERGE put on the rows of its target.
 *
 * A row of the target whose key is not in the source matches no row, and a MERGE leaves it as it is, unless it has a
 * clause for just these rows. So the files of such rows need not be looked at, and do not belong to what it has read.
 *
 * @param merge a MERGE that is running
 * @param snapshot the version of the target that it reads
 */
final class MergeKeys(merge: MergeIntoCommand, snapshot: Snapshot) extends PredicateHelper {
  import MergeKeys._

  private val session = SparkSession.active.asInstanceOf[classic.SparkSession]

  // What is equal in a row of the target and in a row of the source that match.
  private val pairs: Seq[(Expression, Expression)] = {
    val (target, source) = (merge.target.outputSet, merge.source.outputSet)
    def isOf(side: AttributeSet)(key: Expression) =
      JoinSide.isPlain(key) && key.references.nonEmpty && key.references.subsetOf(side)
    splitConjunctivePredicates(merge.condition)
      .collect {
        case EqualTo(left, right) if isOf(target)(left) && isOf(source)(right) => left -> right
        case EqualTo(left, right) if isOf(source)(left) && isOf(target)(right) => right -> left
      }
      .filter { case (own, _) => JoinCondition.column(own).flatMap(ColumnBounds.path(_, snapshot.schema)).isDefined }
  }

  def conditions: Seq[Expression] =
    if (pairs.isEmpty || merge.notMatchedBySourceClauses.nonEmpty) Nil
    else {
      val limits = KeyLimits.of(session)
      if (limits.enabled) written(limits).orElse(stored(limits)).getOrElse(Nil) else Nil
    }

  /** Whether no part of the source depends on when it is computed; functions of users may, whatever they say. */
  private def isFixed: Boolean = merge.source.deterministic && !merge.source.containsPattern(CURRENT_LIKE) &&
    merge.source.collectWithSubqueries { case node if node.expressions.exists(JoinSide.hasUserCode) => node }.isEmpty

  /** From the values in the text of the statement, or those of a local DataFrame. */
  private def written(limits: KeyLimits): Option[Seq[Expression]] =
    if (!isFixed) None
    else
      DataFrameUtils.ofRows(session, keysOf(merge.source)).queryExecution.optimizedPlan match {
        case local: LocalRelation => Some(conditionsOf(local.data, limits.mergeRanges))
        case _ => None
      }

  /** Whether a job reads the rows of the statement. */
  private def isRepeatable: Boolean =
    MergeSources.areStored(merge) || isFixed && MergeSources.areUnchanging(merge)

  /** From a job on the rows of the statement: their keys, or the ends of their range if they are many. */
  private def stored(limits: KeyLimits): Option[Seq[Expression]] =
    if (snapshot.sizeInBytes < limits.mergeBytes || !isRepeatable) None
    else {
      val source = MergeSources.rows(merge).queryExecution.analyzed
      OwnQueries.rowsUpTo(limits.keys, session, keysOf(source), Description) match {
        case Some(rows) => Some(conditionsOf(rows.toSeq, limits.mergeRanges))
        case None if source.stats.sizeInBytes > snapshot.sizeInBytes => None
        case None =>
          val keys = pairs.map(_._2)
          val ends = (keys.map(Min(_)) ++ keys.map(Max(_))).map(_.toAggregateExpression())
          val row = OwnQueries.rows(session, Aggregate(Nil, named(ends), source), Description).head
          Some(conditionsOf(row.toSeq(ends.map(_.dataType)).grouped(keys.size).map(InternalRow.fromSeq).toSeq, 1))
      }
    }

  private def keysOf(source: LogicalPlan): LogicalPlan = Project(named(pairs.map(_._2)), source)

  private def conditionsOf(rows: Seq[InternalRow], ranges: Int): Seq[Expression] =
    pairs.zipWithIndex.flatMap { case ((own, key), position) =>
      val values = rows.iterator.map(_.get(position, key.dataType)).filter(_ != null).toArray[Any]
      JoinCondition.of(own, key.dataType, Some(values), ranges).toOption.flatMap { condition =>
        val isExact = isPartition(condition.column) || condition.replacedFilter.contains(condition.fileFilter)
        if (isExact || !hasReplacedBounds) Some(condition.fileFilter) else condition.replacedFilter
      }
    }

  /** Whether a bound in the log may replace bytes that are not UTF-8; by a job, for keys that are not ASCII only. */
  private lazy val hasReplacedBounds: Boolean = {
    val replaced = snapshot.allFiles.toDF().where(col("stats").rlike(Replaced)).select("path").limit(1)
    OwnQueries.rows(session, replaced.queryExecution.analyzed, Description).nonEmpty
  }

  private def isPartition(column: Expression): Boolean = column match {
    case attribute: Attribute => snapshot.metadata.partitionColumns.exists(_.equalsIgnoreCase(attribute.name))
    case _ => false
  }
}

object MergeKeys extends Logging {
  private val Description = "USE keys of a MERGE"

  // U+FFFD as it is, and as some writers of JSON escape it.
  private val Replaced = "\uFFFD|(?i)\\\\ufffd"

  private def named(keys: Seq[Expression]): Seq[NamedExpression] =
    keys.zipWithIndex.map { case (key, position) => Alias(key, s"key$position")() }

  /** The conditions, none if the keys tell nothing; or the code of the error if they cannot be read. */
  def conditionsOf(merge: MergeIntoCommand, snapshot: Snapshot): Either[String, Seq[Expression]] =
    try Right(new MergeKeys(merge, snapshot).conditions)
    catch {
      case NonFatal(error) if !IndexedTransaction.endsStatement(error) =>
        logWarning(s"The keys of a MERGE into ${snapshot.path} did not restrict the files of its target", error)
        Left(UseException.codeOf(error))
    }
}
