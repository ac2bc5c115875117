package io.usespark

import scala.jdk.CollectionConverters._
import scala.util.{Left, Right}
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.usespark.SessionSettings

/** Why a sample is taken by Spark, row by row: a code and what it is about. */
final case class SampleReason(code: String, detail: String)

object SampleReason {

  /** On a Sample that stays in the plan; Spark copies tags with the nodes. */
  val Tag: TreeNodeTag[SampleReason] = TreeNodeTag[SampleReason]("use.sample.reason")
}

/**
 * Turns a Sample over indexed tables into a filter on the rows' weights, just above each relation.
 *
 * Python says which columns and which weights. Where it says nothing, or anything fails, Spark samples as usual, and the
 * reason stays on the Sample.
 */
case class SampleRule(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  private type Weighed = Either[SampleReason, LogicalPlan]

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!Python.attached) plan
    else
      plan.transformUp { case sample: Sample =>
        val weighed: Weighed =
          try
            if (sample.withReplacement) refuse("WITH_REPLACEMENT", "a row may be drawn more than once")
            else weigh(sample.child, sample)
          catch {
            case NonFatal(error) =>
              logWarning("A sample was not turned into a weight filter; Spark samples it as usual.", error)
              refuse("ERROR", String.valueOf(error.getMessage).linesIterator.nextOption().getOrElse(""))
          }
        weighed.fold(leave(sample, _), identity)
      }

  /** Keeps the sample as it is, with the reason, which is logged once. */
  private def leave(sample: Sample, reason: SampleReason): LogicalPlan = {
    if (!sample.getTagValue(SampleReason.Tag).contains(reason))
      logInfo(s"Spark takes a sample itself: ${reason.code}, ${reason.detail}")
    sample.setTagValue(SampleReason.Tag, reason)
    sample
  }

  private def refuse(code: String, detail: String): Weighed = Left(SampleReason(code, detail))

  /** Only through nodes that keep or drop rows one by one: to sample below anything else would give other rows. */
  private def weigh(plan: LogicalPlan, sample: Sample): Weighed = plan match {
    case Project(list, _) if !list.forall(_.deterministic) =>
      refuse("NON_DETERMINISTIC_BELOW", "a projection below the sample")
    case Filter(condition, _) if !condition.deterministic =>
      refuse("NON_DETERMINISTIC_BELOW", "a filter below the sample")
    // Such a filter is a sample already: another one would select the very same rows again. Files hold rows by weight.
    case Filter(condition, below) if selectsByWeight(condition, below) =>
      refuse("SAMPLE_OF_SAMPLE", "a filter on a hash of columns, or on facts about files, below the sample")
    // Keys of a stored sample would select the rows of the new one again, or none of them, as a join would.
    case Project(list, _) if list.exists(looksUp) => refuse("NOT_A_TABLE", "a subquery in a column below the sample")
    case Filter(condition, _) if looksUp(condition) => refuse("NOT_A_TABLE", "a subquery in a filter below the sample")
    case _: Sample => refuse("SAMPLE_OF_SAMPLE", "a sample that Spark takes below the sample")
    case _: Project | _: Filter | _: Sort | _: RepartitionOperation | _: SubqueryAlias | _: View =>
      weigh(plan.children.head, sample).map(child => plan.withNewChildren(Seq(child)))
    case union: Union =>
      val branches = union.children.map(weigh(_, sample))
      branches
        .collectFirst { case Left(reason) => Left(reason.copy(detail = s"in a branch of a union: ${reason.detail}")) }
        .getOrElse(Right(union.withNewChildren(branches.flatMap(_.toSeq))))
    case relation @ IndexedRelation(index: TahoeLogFileIndex) => filtered(relation, index.getSnapshot, sample)
    case _: InMemoryRelation => refuse("CACHED", "the rows come from a cache")
    case _: LogicalRelation => refuse("NOT_INDEXED", "not a Delta table")
    case other => refuse("NOT_A_TABLE", s"${other.nodeName} below the sample")
  }

  /** Whether a value depends on rows of a subquery that belong to a row; the value of any other is the same for all. */
  private def looksUp(expression: Expression): Boolean = expression.exists {
    case _: InSubquery | _: Exists => true
    case subquery: SubqueryExpression => subquery.isCorrelated
    case _ => false
  }

  /** Whether a condition on rows has hashes or facts about files, also by a name that a column below gives them. */
  private def selectsByWeight(condition: Expression, below: LogicalPlan): Boolean = {
    val named = below.collect { case Project(list, _) =>
      list.collect { case alias: Alias => alias.exprId -> alias.child }
    }
    val valueOf = named.flatten.toMap
    def depends(expression: Expression): Boolean = expression.exists {
      case _: Murmur3Hash | MetadataAttribute(_) => true
      case attribute: Attribute => valueOf.get(attribute.exprId).exists(depends)
      case _ => false
    }
    depends(condition)
  }

  private def filtered(relation: LogicalRelation, snapshot: Snapshot, sample: Sample): Weighed = {
    val metadata = snapshot.metadata
    if (!IndexedRelation.isIndexed(metadata.configuration)) refuse("NOT_INDEXED", "a Delta table without an index")
    else {
      val question = Map[String, Any](
        "configuration" -> IndexedRelation.json(metadata.configuration),
        "lower" -> sample.lowerBound,
        "upper" -> sample.upperBound,
        "settings" -> SessionSettings.json(session)
      )
      val answer = new ObjectMapper().readTree(Python.text(Operation.PLAN_SAMPLE, question).get)
      if (answer.has("reason")) refuse(answer.get("reason").asText(), answer.get("detail").asText())
      else {
        val names = answer.get("columns").elements().asScala.map(_.asText()).toSeq
        val columns = names.map(name => name -> IndexedRelation.column(relation, metadata.schema, name))
        columns
          .collectFirst { case (name, None) => refuse("MISSING_COLUMN", s"the table has no column '$name' any more") }
          .getOrElse(Right(withWeights(relation, Murmur3Hash(columns.flatMap(_._2), 42), answer)))
      }
    }
  }

  private def withWeights(relation: LogicalRelation, weight: Expression, answer: JsonNode): LogicalPlan = {
    def bound(name: String): Option[Literal] =
      Option(answer.get(name)).filterNot(_.isNull).map(node => Literal(node.asInt()))
    val bounds = bound("first").map(GreaterThanOrEqual(weight, _)) ++ bound("last").map(LessThanOrEqual(weight, _))
    bounds.reduceOption[Expression](And(_, _)).fold[LogicalPlan](relation)(Filter(_, relation))
  }
}
