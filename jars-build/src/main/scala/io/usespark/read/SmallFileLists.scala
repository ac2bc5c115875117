package io.usespark.read

import java.{util => ju}
import java.lang.ref.SoftReference

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.execution.{FilterExec, LogicalRDD, ProjectExec, SparkPlan, SparkStrategy, UnaryExecNode}

/**
 * Selects the files of a small table in the driver.
 *
 * Delta keeps the list of files of a version as an RDD, and starts a job for each table of a query to filter it. If the
 * RDD has one partition (see `SmallLogs`), starting this job takes longer than its task. Here, the list is fetched once
 * for each version of the table, and Spark's own rule for local rows evaluates the filters.
 */
object SmallFileLists extends SparkStrategy {

  private val MostRows = 5000

  private type Rows = SoftReference[Option[Seq[InternalRow]]]

  // Delta keeps the RDD as long as it keeps the version. None: the list is too long.
  private val lists = ju.Collections.synchronizedMap(new ju.WeakHashMap[RDD[InternalRow], Rows])

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case _: Project | _: Filter if listOf(plan).isDefined => Seq(CollectedFiles(physical(plan))(plan))
    case _ => Nil
  }

  /** The list that a plan reads, if it does nothing else than filters and projections. */
  private def listOf(plan: LogicalPlan): Option[LogicalRDD] = plan match {
    case Project(_, child) => listOf(child)
    case Filter(_, child) => listOf(child)
    case list: LogicalRDD =>
      val isFileList = Option(list.rdd.name).exists(_.startsWith("Delta Table State"))
      Some(list).filter(_ => isFileList && list.rdd.getNumPartitions == 1)
    case _ => None
  }

  private def physical(plan: LogicalPlan): SparkPlan = plan match {
    case Project(columns, child) => ProjectExec(columns, physical(child))
    case Filter(condition, child) => FilterExec(condition, physical(child))
    case list => planLater(list)
  }

  /** The files that a plan selects; None if a job has to select them. */
  def selectedFiles(plan: LogicalPlan): Option[Seq[InternalRow]] =
    for (list <- listOf(plan); rows <- rowsOf(list.rdd); files <- localRows(evaluate(plan, rows))) yield files

  private def evaluate(plan: LogicalPlan, rows: Seq[InternalRow]): LogicalPlan = plan match {
    case list: LogicalRDD => LocalRelation(list.output, rows)
    case _ => ConvertToLocalRelation(plan.withNewChildren(plan.children.map(evaluate(_, rows))))
  }

  private def rowsOf(list: RDD[InternalRow]): Option[Seq[InternalRow]] =
    Option(lists.get(list)).flatMap(reference => Option(reference.get)).getOrElse {
      val rows = list.take(MostRows + 1)
      val fetched = Some(rows.toSeq).filter(_.size <= MostRows)
      lists.put(list, new SoftReference(fetched))
      fetched
    }

  private def localRows(plan: LogicalPlan): Option[Seq[InternalRow]] = plan match {
    case local: LocalRelation => Some(local.data)
    case _ => None
  }
}

/** Collects files of a list without a job. Any other use of the plan starts a job, as without this node. */
case class CollectedFiles(child: SparkPlan)(plan: LogicalPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(plan)
  override protected def withNewChildInternal(newChild: SparkPlan): CollectedFiles = copy(child = newChild)(plan)
  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override def executeCollect(): Array[InternalRow] =
    SmallFileLists.selectedFiles(plan).fold(child.executeCollect())(_.toArray)
}
