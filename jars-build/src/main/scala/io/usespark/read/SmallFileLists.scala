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
 * Chooses the files of a small table in the driver.
 *
 * For each table of a query, Delta filters its list of files, which Spark keeps as an RDD, in a job. Where the list is
 * one partition (see `SmallLogs`), this job has one task, and its start takes longer than its work. The list is fetched
 * once for each version of the table instead, and Spark's own rule for local rows evaluates the filters.
 */
object SmallFileLists extends SparkStrategy {

  private val MostRows = 5000

  private type Rows = SoftReference[Option[Seq[InternalRow]]]

  // Delta keeps the RDD as long as it keeps the version. None: the list is too long.
  private val fetched = ju.Collections.synchronizedMap(new ju.WeakHashMap[RDD[InternalRow], Rows])

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

  /** The files that a plan chooses; None if a job has to find them. */
  def chosenBy(plan: LogicalPlan): Option[Seq[InternalRow]] =
    for (list <- listOf(plan); rows <- rowsOf(list.rdd); chosen <- localRows(evaluated(plan, rows))) yield chosen

  private def evaluated(plan: LogicalPlan, rows: Seq[InternalRow]): LogicalPlan = plan match {
    case list: LogicalRDD => LocalRelation(list.output, rows)
    case _ => ConvertToLocalRelation(plan.withNewChildren(plan.children.map(evaluated(_, rows))))
  }

  private def rowsOf(list: RDD[InternalRow]): Option[Seq[InternalRow]] =
    Option(fetched.get(list)).flatMap(known => Option(known.get)).getOrElse {
      val rows = list.take(MostRows + 1)
      val found = Some(rows.toSeq).filter(_.size <= MostRows)
      fetched.put(list, new SoftReference(found))
      found
    }

  private def localRows(plan: LogicalPlan): Option[Seq[InternalRow]] = plan match {
    case local: LocalRelation => Some(local.data)
    case _ => None
  }
}

/** Collects files of a list without a job; anything else takes one, as before. */
case class CollectedFiles(child: SparkPlan)(plan: LogicalPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(plan)
  override protected def withNewChildInternal(newChild: SparkPlan): CollectedFiles = copy(child = newChild)(plan)
  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override def executeCollect(): Array[InternalRow] =
    SmallFileLists.chosenBy(plan).fold(child.executeCollect())(_.toArray)
}
