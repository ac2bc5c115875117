package org.apache.spark.sql.execution.usespark

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession}

/** Queries that USE executes to plan a query or a statement of a user. */
object OwnQueries {
  private val JobDescription = "spark.job.description"

  /** The rows of a query. */
  def rows(session: SparkSession, plan: LogicalPlan, description: String): Array[InternalRow] =
    collected(session, Dataset.ofRows(session, plan), description)

  /** The rows of a query; None if they are more than some number. */
  def rowsUpTo(most: Int, session: SparkSession, plan: LogicalPlan, description: String): Option[Array[InternalRow]] = {
    val rows =
      collected(session, Dataset.ofRows(session, plan).limit(math.min(most, Int.MaxValue - 1) + 1), description)
    if (rows.length <= most) Some(rows) else None
  }

  /** Runs jobs under a description of their own. */
  def described[T](context: SparkContext, description: String)(jobs: => T): T = {
    val before = context.getLocalProperty(JobDescription)
    context.setJobDescription(description)
    try jobs
    finally context.setLocalProperty(JobDescription, before)
  }

  private def collected(session: SparkSession, data: Dataset[_], description: String): Array[InternalRow] =
    described(session.sparkContext, description)(data.queryExecution.executedPlan.executeCollect())
}
