package org.apache.spark.sql.delta.usespark

import scala.util.control.NonFatal

import io.usespark.{JoinCondition, JoinPruning, MergeSources}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.delta.{DataFrameUtils, Snapshot}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.execution.QueryExecution

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
      key.deterministic && key.references.nonEmpty && key.references.subsetOf(side) && !SubqueryExpression.hasSubquery(
        key
      )
    splitConjunctivePredicates(merge.condition)
      .collect {
        case EqualTo(left, right) if isOf(target)(left) && isOf(source)(right) => left -> right
        case EqualTo(left, right) if isOf(source)(left) && isOf(target)(right) => right -> left
      }
      .filter { case (own, _) => JoinCondition.column(own).isDefined }
  }

  def conditions: Seq[Expression] =
    if (pairs.isEmpty || merge.notMatchedBySourceClauses.nonEmpty) Nil
    else
      written
        .orElse {
          val isLarge = snapshot.sizeInBytes >= JoinPruning.minBytes(session) / CheaperThanStatistics
          if (isLarge && (MergeSources.areStored(merge) || isFixed && MergeSources.areUnchanging(merge))) stored
          else None
        }
        .getOrElse(Nil)

  /** Whether no part of the source depends on when it is computed. */
  private def isFixed: Boolean = merge.source.deterministic && !merge.source.containsPattern(TreePattern.CURRENT_LIKE)

  /** From the values in the text of the statement, or those of a local DataFrame. */
  private def written: Option[Seq[Expression]] =
    if (!isFixed) None
    else
      keysOf(merge.source).optimizedPlan match {
        case local: LocalRelation => Some(conditionsOf(local.data, MaxRanges))
        case _ => None
      }

  /** From a job on the rows as Delta has stored them: their keys, or the ends of their range if they are many. */
  private def stored: Option[Seq[Expression]] = {
    val source = MergeSources.rows(merge).queryExecution.analyzed
    val most = JoinPruning.maxKeys(session)
    val rows = collected(DataFrameUtils.ofRows(session, keysOf(source).analyzed).limit(most.toInt + 1).queryExecution)
    if (rows.length <= most) Some(conditionsOf(rows, MaxRanges))
    else if (source.stats.sizeInBytes > snapshot.sizeInBytes) None
    else {
      val keys = pairs.map(_._2)
      val ends = (keys.map(Min(_)) ++ keys.map(Max(_))).map(_.toAggregateExpression())
      val row = collected(executionOf(Aggregate(Nil, named(ends), source))).head.toSeq(ends.map(_.dataType))
      Some(conditionsOf(row.grouped(keys.size).map(InternalRow.fromSeq).toSeq, 1))
    }
  }

  private def keysOf(source: LogicalPlan): QueryExecution = executionOf(Project(named(pairs.map(_._2)), source))

  private def executionOf(plan: LogicalPlan): QueryExecution = DataFrameUtils.ofRows(session, plan).queryExecution

  private def collected(query: QueryExecution): Seq[InternalRow] = {
    val context = session.sparkContext
    val description = context.getLocalProperty(JobDescription)
    context.setJobDescription("USE keys of a MERGE")
    try query.executedPlan.executeCollect().toSeq
    finally context.setLocalProperty(JobDescription, description)
  }

  private def conditionsOf(rows: Seq[InternalRow], ranges: Int): Seq[Expression] =
    pairs.zipWithIndex.flatMap { case ((own, key), position) =>
      val values = rows.iterator.map(_.get(position, key.dataType)).filter(_ != null).toArray[Any]
      JoinCondition.of(own, key.dataType, Some(values), ranges).toOption.map(_.filter)
    }
}

object MergeKeys extends Logging {
  // A job that reads the keys of a source costs less than one that reads the statistics of all files.
  private val CheaperThanStatistics = 16
  // Delta compares each file with each of them.
  private val MaxRanges = 50
  private val JobDescription = "spark.job.description"

  private def named(keys: Seq[Expression]): Seq[NamedExpression] =
    keys.zipWithIndex.map { case (key, position) => Alias(key, s"key$position")() }

  /** The conditions; none if the keys tell nothing, or cannot be read. */
  def conditionsOf(merge: MergeIntoCommand, snapshot: Snapshot): Seq[Expression] =
    if (!JoinPruning.isEnabled(SparkSession.active)) Nil
    else
      try new MergeKeys(merge, snapshot).conditions
      catch {
        case NonFatal(error) if !IndexedTransaction.endsStatement(error) =>
          logWarning(s"The keys of a MERGE into ${snapshot.path} did not restrict the files of its target", error)
          Nil
      }
}
