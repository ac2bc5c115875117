package io.usespark

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.{InnerLike, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.usespark.SideKeys
import org.apache.spark.sql.types._

/**
 * The other side of a join as a query of its own, which has the rows of the side, and maybe more of them.
 *
 * @param plan the query.
 * @param keys of the join, as expressions of its columns.
 */
final case class JoinSide(plan: LogicalPlan, keys: Seq[Expression]) {

  /** Bytes that a job reads for the keys, about: those of the columns of keys and conditions, in files that are left. */
  def bytes: Long = plan
    .collectLeaves()
    .map {
      case relation @ IndexedRelation(index: PreparedDeltaFileIndex) =>
        val columns = relation.output.filter(needed.contains)
        FileCount.of(index.preparedScan.files).bytes * width(columns) / math.max(1, width(relation.output))
      case _ => 0L
    }
    .sum

  private def width(columns: Seq[Attribute]): Long = columns.map(_.dataType.defaultSize.toLong).sum

  /** The columns in keys and conditions, and those from which they are computed. */
  private lazy val needed: AttributeSet = {
    val start = AttributeSet(keys.flatMap(_.references)) ++ AttributeSet(plan.collect {
      case filter: Filter => filter.condition.references.toSeq
      case join: Join => join.condition.toSeq.flatMap(_.references)
      case aggregate: Aggregate => aggregate.references.toSeq
    }.flatten)
    val sources = plan.collect {
      case project: Project => project.projectList.map(column => column.toAttribute -> column.references.toSeq)
      case union: Union => union.output.indices.map(i => union.output(i) -> union.children.map(_.output(i)))
    }.flatten
    // From the top down, each node names only columns of nodes below.
    sources.foldLeft(start) { case (known, (column, from)) =>
      if (known.contains(column)) known ++ AttributeSet(from) else known
    }
  }
}

object JoinSide extends PredicateHelper {

  /** The side of a key; the code of the reason why no job can read it. */
  def of(key: JoinKey): Either[String, JoinSide] =
    for {
      query <- SideKeys.query(key.side).toRight("UNREPEATABLE_SIDE")
      plan = if (isMonotonic(query)) withoutSubqueries(query) else query
      isWhole = AttributeSet(key.keys.flatMap(_.references)).subsetOf(plan.outputSet)
      _ <- Either.cond(isWhole && isRepeatable(plan) && key.keys.forall(isPlain), (), "UNREPEATABLE_SIDE")
      _ <- Either.cond(isFiltered(plan), (), "UNFILTERED_SIDE")
    } yield JoinSide(plan, key.keys)

  private def every(plan: LogicalPlan)(test: LogicalPlan => Boolean): Boolean = !plan.exists(!test(_))

  /** Whether more rows below never remove a row of the result. */
  private def isMonotonic(plan: LogicalPlan): Boolean = every(plan) {
    case join: Join => join.joinType.isInstanceOf[InnerLike] || join.joinType == LeftSemi
    case aggregate: Aggregate => aggregate.aggregateExpressions.forall(!hasFunction(_))
    case _: LeafNode | _: Project | _: Filter | _: Union | _: Sort | _: RepartitionOperation => true
    case _ => false
  }

  /** Conditions with subqueries, as Spark adds them to prune partitions, would execute other queries again. */
  private def withoutSubqueries(plan: LogicalPlan): LogicalPlan = plan.transformUp { case Filter(condition, child) =>
    splitConjunctivePredicates(condition).filterNot(hasSubquery).reduceOption(And).fold(child)(Filter(_, child))
  }

  private def hasSubquery(expression: Expression): Boolean = expression.exists(_.isInstanceOf[PlanExpression[_]])

  private def hasFunction(expression: Expression): Boolean = expression.exists(_.isInstanceOf[AggregateExpression])

  /** Whether the query has the same rows each time: those of fixed versions, through operators that add no chance. */
  private def isRepeatable(plan: LogicalPlan): Boolean = plan.deterministic && !plan.isStreaming && every(plan) { node =>
    node.expressions.forall(isPlain) && (node match {
      case IndexedRelation(index: PreparedDeltaFileIndex) =>
        // Those of a LIMIT are some files.
        index.preparedScan.partition != null
      case _: LogicalRelation => false
      case _: LocalRelation | _: Range | _: OneRowRelation => true
      case aggregate: Aggregate =>
        aggregate.groupingExpressions.forall(key => isExact(key.dataType)) &&
        aggregate.aggregateExpressions.forall(!_.exists {
          case function: AggregateExpression => !isExact(function.aggregateFunction)
          case _ => false
        })
      case _: Project | _: Filter | _: Join | _: Union | _: Sort | _: RepartitionOperation => true
      case _ => false
    })
  }

  /** Whether the value depends on nothing but the row. */
  def isPlain(expression: Expression): Boolean =
    expression.deterministic && !hasSubquery(expression) && !hasUserCode(expression)

  def hasUserCode(expression: Expression): Boolean =
    expression.exists(_.isInstanceOf[UserDefinedExpression])

  /** Whether the order of the rows does not matter to the result. */
  private def isExact(function: AggregateFunction): Boolean = function match {
    case _: Count | _: Min | _: Max | _: Sum => function.children.forall(child => isExact(child.dataType))
    case average: Average => average.child.dataType.isInstanceOf[DecimalType]
    case _ => false
  }

  /** Whether equal values are the same. */
  private def isExact(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | _: DecimalType => true
    case DateType | TimestampType | TimestampNTZType | StringType => true
    case _ => false
  }

  private def isFiltered(plan: LogicalPlan): Boolean = plan.exists {
    case filter: Filter => splitConjunctivePredicates(filter.condition).exists(!_.isInstanceOf[IsNotNull])
    case _: LocalRelation | _: Range | _: OneRowRelation => true
    case _ => false
  }
}
