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

  def node(filter: Expression): ObjectNode = node(filter, 1)

  private def node(e: Expression, depth: Int): ObjectNode = {
    val json = mapper.createObjectNode().put("text", text(e))
    e match {
      case And(left, right) if depth < Deepest => parts(json.put("operator", "and"), Seq(left, right), depth)
      case Or(left, right) if depth < Deepest => parts(json.put("operator", "or"), Seq(left, right), depth)
      case leaf =>
        json.put("operator", "").put("tree", Conditions.json(Seq(leaf), schema).orNull)
        put(json, leaf)
        val names = json.putArray("columns")
        leaf.references.toSeq.map(_.name).sorted.distinct.foreach(name => names.add(name))
        json.put("is_partition", leaf.references.nonEmpty && leaf.references.forall(isPartition))
    }
    json
  }

  private def parts(json: ObjectNode, of: Seq[Expression], depth: Int): Unit = {
    val array = json.putArray("of")
    of.foreach(part => array.add(node(part, depth + 1)))
  }

  /** Adds what the condition is about. */
  private def put(json: ObjectNode, leaf: Expression): Unit = {
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
        val path = json.putArray("path")
        IndexedRelation.physicalPath(subject, schema).toSeq.flatten.foreach(name => path.add(name))
      case Cast(inner, to, _, _) if IndexedRelation.physicalName(inner, schema).isDefined =>
        json.put("subject", "cast").put("column", IndexedRelation.physicalName(inner, schema).get)
        json.put("type", inner.dataType.sql).put("as", to.sql)
      case _ if subject.references.size == 1 && !SubqueryExpression.hasSubquery(subject) && subject.deterministic =>
        json.put("subject", "function").put("function", subject.prettyName)
        json.put("type", subject.references.head.dataType.sql)
        val arguments = json.putArray("arguments")
        subject.children.foreach(child => arguments.add(text(child)))
      case _ => json.put("subject", "other")
    }
  }

  /** The compared expression, the operator and the constants. */
  private def comparison(e: Expression): (Expression, String, Seq[Expression]) = e match {
    case Not(inner) =>
      val (subject, symbol, constants) = comparison(inner)
      (subject, s"NOT $symbol", constants)
    case Compared(subject, symbol, constant: Literal) => (subject, symbol, Seq(constant))
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

  private def isPartition(attribute: Attribute): Boolean =
    metadata.partitionColumns.exists(_.equalsIgnoreCase(attribute.name))

  private def text(e: Expression): String =
    e.transform {
      case attribute: AttributeReference => attribute.withQualifier(Nil)
      case InSet(value, values) if values.size > 10 =>
        In(value, values.toSeq.take(10).map(Literal(_, value.dataType)) :+ Literal("…"))
    }.sql
}
