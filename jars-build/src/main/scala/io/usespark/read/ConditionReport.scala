package io.usespark

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.delta.actions.Metadata

/** Filters of a scan as users wrote them, for explanations: their text, their columns, and what is compared. */
final class ConditionReport(metadata: Metadata) {
  private val mapper = new ObjectMapper()
  private val schema = metadata.schema
  private val Deepest = 20
  private val LongestText = 200
  private val compared = scala.collection.mutable.LinkedHashMap.empty[String, Seq[String]]

  /** Columns outside partitions that were compared directly: stored names with the names of each level. */
  def columns: Seq[(String, Seq[String])] = compared.toSeq

  def node(filter: Expression): ObjectNode = node(filter, 1)

  private def node(e: Expression, depth: Int): ObjectNode = {
    val json = mapper.createObjectNode().put("text", text(e))
    e match {
      case And(left, right) if depth < Deepest => parts(json.put("operator", "and"), Seq(left, right), depth)
      case Or(left, right) if depth < Deepest => parts(json.put("operator", "or"), Seq(left, right), depth)
      case leaf =>
        json.put("operator", "").put("tree", Conditions.json(Seq(leaf), schema).orNull)
        val subject = put(json, leaf)
        val names = json.putArray("columns")
        leaf.references.toSeq.map(_.name).sorted.distinct.foreach(name => names.add(name))
        json.put("is_partition", leaf.references.nonEmpty && leaf.references.forall(isPartition))
        subject.filterNot(_.references.exists(isPartition)).foreach(remember)
    }
    json
  }

  private def parts(json: ObjectNode, of: Seq[Expression], depth: Int): Unit = {
    val array = json.putArray("of")
    of.foreach(part => array.add(node(part, depth + 1)))
  }

  /** Adds what the condition is about; returns the column that it compares, if it compares one. */
  private def put(json: ObjectNode, leaf: Expression): Option[Expression] = {
    val (subject, symbol, constants) = comparison(leaf)
    json.put("comparison", symbol)
    val values = json.putArray("constants")
    constants.take(10).foreach(constant => values.add(constant.sql))
    val physical = IndexedRelation.physicalName(subject, schema)
    subject match {
      case _: Murmur3Hash => json.put("subject", "hash")
      case _: BinaryComparison => json.put("subject", "other") // both sides have columns
      case _ if physical.isDefined =>
        json.put("subject", "column").put("column", physical.get).put("type", subject.dataType.sql)
      case Cast(inner, to, _, _) if IndexedRelation.physicalName(inner, schema).isDefined =>
        json.put("subject", "cast").put("column", IndexedRelation.physicalName(inner, schema).get)
        json.put("name", text(inner)).put("type", inner.dataType.sql).put("as", to.sql)
      case _ if subject.references.size == 1 && !SubqueryExpression.hasSubquery(subject) && subject.deterministic =>
        json.put("subject", "function").put("function", subject.prettyName)
        json.put("type", subject.references.head.dataType.sql)
        val arguments = json.putArray("arguments")
        subject.children.foreach(child => arguments.add(text(child)))
      case _ => json.put("subject", "other")
    }
    if (physical.isDefined) Some(subject) else None
  }

  /** The compared expression, the operator and the constants. */
  private def comparison(e: Expression): (Expression, String, Seq[Expression]) = e match {
    case Not(inner) =>
      val (subject, symbol, constants) = comparison(inner)
      (subject, s"NOT $symbol", constants)
    case comparison @ BinaryComparison(left, right: Literal) => (left, comparison.symbol, Seq(right))
    case comparison @ BinaryComparison(left: Literal, right) => (right, mirrored(comparison.symbol), Seq(left))
    case In(value, list) if list.forall(_.isInstanceOf[Literal]) => (value, "IN", list)
    case InSet(value, values) => (value, "IN", values.toSeq.map(Literal(_, value.dataType)))
    case StartsWith(value, prefix: Literal) => (value, "STARTS WITH", Seq(prefix))
    case EndsWith(value, suffix: Literal) => (value, "ENDS WITH", Seq(suffix))
    case Contains(value, part: Literal) => (value, "CONTAINS", Seq(part))
    case Like(value, pattern: Literal, _) => (value, "LIKE", Seq(pattern))
    case IsNull(value) => (value, "IS NULL", Nil)
    case IsNotNull(value) => (value, "IS NOT NULL", Nil)
    case other => (other, "", Nil)
  }

  private def mirrored(symbol: String): String =
    Map("<" -> ">", "<=" -> ">=", ">" -> "<", ">=" -> "<=").getOrElse(symbol, symbol)

  private def remember(column: Expression): Unit =
    for (name <- IndexedRelation.physicalName(column, schema); path <- IndexedRelation.physicalPath(column, schema))
      compared(name) = path

  private def isPartition(attribute: Attribute): Boolean =
    metadata.partitionColumns.exists(_.equalsIgnoreCase(attribute.name))

  private def text(e: Expression): String = {
    val plain = e.transform {
      case attribute: AttributeReference => attribute.withQualifier(Nil)
      case InSet(value, values) if values.size > 10 =>
        In(value, values.toSeq.take(10).map(Literal(_, value.dataType)) :+ Literal("…"))
    }.sql
    val bare = if (isWrapped(plain)) plain.slice(1, plain.length - 1) else plain
    if (bare.length <= LongestText) bare else bare.take(LongestText) + "…"
  }

  /** Whether the first parenthesis is closed by the last character; false if text in quotes makes that unclear. */
  private def isWrapped(text: String): Boolean = {
    val depths = text.scanLeft(0)((depth, c) => if (c == '(') depth + 1 else if (c == ')') depth - 1 else depth).tail
    text.startsWith("(") && depths.last == 0 && !depths.init.contains(0)
  }
}
