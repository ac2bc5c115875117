package io.usespark

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project, Sample}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.files.TahoeLogFileIndex

/**
 * Turns a Sample over an indexed table into a filter on the rows' weights, just above the relation.
 *
 * Python says which columns and which weights; where it says nothing, or anything fails, Spark samples as usual.
 */
case class SampleRule(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!Python.attached) plan
    else
      plan.transformUp {
        case sample: Sample if !sample.withReplacement =>
          try weigh(sample.child, sample).getOrElse(sample)
          catch {
            case NonFatal(error) =>
              logWarning("A sample was not turned into a weight filter; Spark samples it as usual.", error)
              sample
          }
      }

  private def weigh(plan: LogicalPlan, sample: Sample): Option[LogicalPlan] = plan match {
    case Project(list, child) if list.forall(_.deterministic) => weigh(child, sample).map(Project(list, _))
    // A filter on weights below is a sample already: a sample of a sample stays with Spark.
    case Filter(condition, child) if condition.deterministic && !IndexedRelation.hasHash(condition) =>
      weigh(child, sample).map(Filter(condition, _))
    case relation @ IndexedRelation(index: TahoeLogFileIndex)
        if IndexedRelation.isIndexed(index.getSnapshot.metadata.configuration) =>
      val metadata = index.getSnapshot.metadata
      Python
        .text(
          "plan_sample",
          Map(
            "configuration" -> IndexedRelation.json(metadata.configuration),
            "lower" -> sample.lowerBound,
            "upper" -> sample.upperBound
          )
        )
        .flatMap { answer =>
          val node = new ObjectMapper().readTree(answer)
          val names = node.get("columns").elements().asScala.map(_.asText()).toSeq
          val attributes = names.flatMap(IndexedRelation.attribute(relation, metadata.schema, _))
          if (attributes.size != names.size) None
          else {
            val weight = Murmur3Hash(attributes, 42)
            val bounds = Seq(
              Option(node.get("first")).filterNot(_.isNull).map(v => GreaterThanOrEqual(weight, Literal(v.asInt()))),
              Option(node.get("last")).filterNot(_.isNull).map(v => LessThanOrEqual(weight, Literal(v.asInt())))
            ).flatten
            Some(bounds.reduceOption[Expression](And(_, _)).map(Filter(_, relation)).getOrElse(relation))
          }
        }
    case _ => None
  }
}
