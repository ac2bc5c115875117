package io.usespark

import scala.util.control.NonFatal

import io.delta.sql.parser.DeltaSqlParser
import org.apache.spark.sql.catalyst.parser.{
  HybridParameterContext,
  NamedParameterContext,
  ParameterContext,
  ParserInterface,
  PositionalParameterContext
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Delta's parser, with SQL parameters working: `spark.sql("… :x", args = …)`.
 *
 * The pinned Delta overrides only `parsePlan`, so on this Spark parameters never reach Spark's parser. Statements of
 * Delta's own take none; everything else goes to the parser behind Delta's together with its parameters. Without
 * parameters Delta's parser does everything, since it also changes statements of Spark's, such as CLUSTER BY.
 */
class ParameterParser(delta: ParserInterface) extends ParserInterface {
  override def parsePlanWithParameters(sql: String, parameters: ParameterContext) = delta match {
    case parser: DeltaSqlParser if isEmpty(parameters) => parser.parsePlan(sql)
    case parser: DeltaSqlParser =>
      statementOfDelta(parser, sql).getOrElse(parser.delegate.parsePlanWithParameters(sql, parameters))
    case other => other.parsePlanWithParameters(sql, parameters)
  }

  private def isEmpty(parameters: ParameterContext): Boolean = parameters match {
    case NamedParameterContext(values) => values.isEmpty
    case PositionalParameterContext(values) => values.isEmpty
    case HybridParameterContext(values, _) => values.isEmpty
    case _ => false
  }

  /**
   * A statement of Delta's own. Others may not be parsed without their parameters, as where one stands for a literal that
   * belongs to the syntax; they fail in many ways then.
   */
  private def statementOfDelta(parser: DeltaSqlParser, sql: String): Option[LogicalPlan] =
    try Some(parser.parsePlan(sql)).filter(isOfDelta)
    catch { case NonFatal(_) => None }

  /** Delta's own statements are in Spark's packages too, so only the jar distinguishes them. */
  private def isOfDelta(plan: LogicalPlan): Boolean =
    plan.getClass.getProtectionDomain.getCodeSource == classOf[DeltaSqlParser].getProtectionDomain.getCodeSource

  override def parsePlan(sql: String) = delta.parsePlan(sql)
  override def parseExpression(sql: String) = delta.parseExpression(sql)
  override def parseTableIdentifier(sql: String) = delta.parseTableIdentifier(sql)
  override def parseFunctionIdentifier(sql: String) = delta.parseFunctionIdentifier(sql)
  override def parseMultipartIdentifier(sql: String) = delta.parseMultipartIdentifier(sql)
  override def parseQuery(sql: String) = delta.parseQuery(sql)
  override def parseRoutineParam(sql: String) = delta.parseRoutineParam(sql)
  override def parseTableSchema(sql: String) = delta.parseTableSchema(sql)
  override def parseDataType(sql: String) = delta.parseDataType(sql)
}

object ParameterParser {
  def of(delta: ParserInterface): ParserInterface = new ParameterParser(delta)
}
