package io.usespark

import java.util.Base64

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{BooleanType, Decimal, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** A comparison with an expression without columns, which counts as the right side on whichever side it is. */
object Compared {
  private val Mirrored = Map("<" -> ">", "<=" -> ">=", ">" -> "<", ">=" -> "<=")

  def unapply(comparison: BinaryComparison): Option[(Expression, String, Expression)] = {
    val (left, symbol, right) = (comparison.left, comparison.symbol, comparison.right)
    if (right.references.isEmpty) Some((left, symbol, right))
    else if (left.references.isEmpty) Some((right, Mirrored.getOrElse(symbol, symbol), left))
    else None
  }
}

/**
 * The filters of a scan as a JSON tree: `and`, `or`, `not` with their parts in `of`, comparisons of one column or of one
 * hash with literals, and `unknown` for everything else. What the tree means for the index is decided in Python.
 */
object Conditions {
  private val mapper = new ObjectMapper()

  /** Deeper conditions are sent as `unknown`: neither this stack nor a JSON parser has to hold them. */
  private val Deepest = 100

  /** None when nothing in the filters is about a column that Python could judge. */
  def json(filters: Seq[Expression], schema: StructType): Option[String] = {
    val translated = filters.map(tree(_, schema, 1))
    if (translated.forall(isUnknown)) None else Some(many("and", translated).toString)
  }

  private def tree(e: Expression, schema: StructType, depth: Int): ObjectNode = e match {
    case _ if depth > Deepest => unknown
    case _: And => many("and", parts(e) { case And(left, right) => (left, right) }.map(tree(_, schema, depth + 1)))
    case _: Or => many("or", parts(e) { case Or(left, right) => (left, right) }.map(tree(_, schema, depth + 1)))
    case Not(inner) => many("not", Seq(tree(inner, schema, depth + 1)))
    case Compared(l, symbol, Literal(v, _)) => comparison(l, symbol, Seq(v), schema)
    case In(l, list) if list.forall(_.isInstanceOf[Literal]) =>
      comparison(l, "in", list.map(_.asInstanceOf[Literal].value), schema)
    case InSet(l, values) => comparison(l, "in", values.toSeq, schema)
    case StartsWith(l, Literal(v, _)) => comparison(l, "starts_with", Seq(v), schema)
    case IsNull(l) => comparison(l, "is_null", Nil, schema)
    case IsNotNull(l) => comparison(l, "is_not_null", Nil, schema)
    case Literal(v, BooleanType) => mapper.createObjectNode().put("operator", if (v == true) "all" else "never")
    case column if column.dataType == BooleanType => comparison(column, "=", Seq(true), schema)
    case _ => unknown
  }

  private def unknown: ObjectNode = mapper.createObjectNode().put("operator", "unknown")

  private def isUnknown(node: ObjectNode): Boolean = node.get("operator").asText() == "unknown"

  private def many(operator: String, nodes: Seq[ObjectNode]): ObjectNode =
    if (nodes.forall(isUnknown)) unknown
    else {
      val json = mapper.createObjectNode().put("operator", operator)
      val of = json.putArray("of")
      nodes.foreach(node => of.add(node))
      json
    }

  /** The operands of a chain, however deep: a list of thousands of alternatives must not overflow a stack or a parser. */
  private def parts(e: Expression)(split: PartialFunction[Expression, (Expression, Expression)]): Seq[Expression] = {
    val operands = Seq.newBuilder[Expression]
    var open = List(e)
    while (open.nonEmpty) {
      val next = open.head
      open = split.lift(next).fold { operands += next; open.tail } { case (left, right) => left :: right :: open.tail }
    }
    operands.result()
  }

  private def comparison(left: Expression, operator: String, values: Seq[Any], schema: StructType): ObjectNode = {
    val json = mapper.createObjectNode().put("operator", operator)
    val named = left match {
      case Murmur3Hash(children, 42) => hashed(json, children, schema)
      case cast: Cast if column(json, cast.child, schema) => json.put("as", cast.dataType.catalogString); true
      case other => column(json, other, schema)
    }
    val array = json.putArray("values")
    if (named && values.forall(literal(array, _))) json else unknown
  }

  private def column(json: ObjectNode, e: Expression, schema: StructType): Boolean = {
    val name = IndexedRelation.physicalName(e, schema)
    name.foreach(json.put("column", _).put("type", e.dataType.catalogString))
    name.isDefined
  }

  private def hashed(json: ObjectNode, children: Seq[Expression], schema: StructType): Boolean = {
    val names = children.flatMap(IndexedRelation.physicalName(_, schema))
    val (columns, types) = (json.putArray("hash_of"), json.putArray("types"))
    names.foreach(name => columns.add(name))
    children.foreach(child => types.add(child.dataType.catalogString))
    names.size == children.size
  }

  /** Adds a literal; false when it has no exact spelling. */
  private def literal(array: ArrayNode, value: Any): Boolean = value match {
    case null => array.addNull(); true
    case v: Boolean => array.add(v); true
    case v: Int => array.add(v); true
    case v: Long => array.add(v); true
    case v: Short => array.add(v.toInt); true
    case v: Byte => array.add(v.toInt); true
    case v: Double => array.add(v.toString); true
    case v: Float => array.add(v.toDouble.toString); true
    case v: Decimal => array.add(v.toJavaBigDecimal.toString); true
    case v: UTF8String if v.isValid => array.add(v.toString); true
    case v: Array[Byte] => array.add(Base64.getEncoder.encodeToString(v)); true
    case _ => false
  }
}
