package io.usespark

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.{Decimal, StructType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Lets a Delta scan skip files none of whose blocks meets the query's weights and box.
 *
 * Delta has selected files by its statistics before; Python turns the filters into weights and boxes; where it says
 * nothing, or anything fails, Delta's selection stands.
 */
case class ReplaceFileIndex(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!Python.attached || plan.isInstanceOf[Subquery]) plan
    else
      plan.transformWithSubqueries { case scan @ PhysicalOperation(_, filters, relation: LogicalRelation) =>
        relation match {
          case IndexedRelation(index: PreparedDeltaFileIndex) if !index.isInstanceOf[BlockFileIndex] =>
            try prune(scan, filters, relation, index)
            catch {
              case NonFatal(error) =>
                logWarning("Files were not skipped by the index; Delta's selection stands.", error)
                scan
            }
          case _ => scan
        }
      }

  private def prune(
      scan: LogicalPlan,
      filters: Seq[Expression],
      relation: LogicalRelation,
      index: PreparedDeltaFileIndex
  ): LogicalPlan = {
    val metadata = index.preparedScan.scannedSnapshot.metadata
    val conditions =
      if (IndexedRelation.isIndexed(metadata.configuration)) Conditions.json(filters, metadata.schema) else None
    val answer =
      if (conditions.isEmpty) None
      else
        Python.text(
          "plan_read",
          Map("configuration" -> IndexedRelation.json(metadata.configuration), "conditions" -> conditions.get)
        )
    answer.map(BlockPruning.parse).fold(scan) { pruning =>
      val candidates = index.preparedScan.files
      val kept = candidates.filter(pruning.keep)
      if (kept.size == candidates.size) scan
      else
        scan.transformUp {
          case same: LogicalRelation if same eq relation =>
            val files = same.relation.asInstanceOf[HadoopFsRelation]
            same.copy(relation = files.copy(location = new BlockFileIndex(index, pruning, kept))(files.sparkSession))
        }
    }
  }
}

/** The comparisons of a scan that an index could use, as JSON; what is not understood is left out and prunes nothing. */
object Conditions {
  private val mapper = new ObjectMapper()

  def json(filters: Seq[Expression], schema: StructType): Option[String] = {
    val found = mapper.createArrayNode()
    filters.flatMap(conjuncts).foreach(condition(_, schema).foreach(node => found.add(node)))
    if (found.isEmpty) None else Some(found.toString)
  }

  private def conjuncts(e: Expression): Seq[Expression] = e match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }

  private def condition(e: Expression, schema: StructType): Option[ObjectNode] = e match {
    case EqualTo(l, Literal(v, _)) => node(l, "=", Seq(v), schema)
    case EqualNullSafe(l, Literal(v, _)) => node(l, "=", Seq(v), schema)
    case LessThan(l, Literal(v, _)) => node(l, "<", Seq(v), schema)
    case LessThanOrEqual(l, Literal(v, _)) => node(l, "<=", Seq(v), schema)
    case GreaterThan(l, Literal(v, _)) => node(l, ">", Seq(v), schema)
    case GreaterThanOrEqual(l, Literal(v, _)) => node(l, ">=", Seq(v), schema)
    case EqualTo(Literal(v, _), r) => node(r, "=", Seq(v), schema)
    case LessThan(Literal(v, _), r) => node(r, ">", Seq(v), schema)
    case LessThanOrEqual(Literal(v, _), r) => node(r, ">=", Seq(v), schema)
    case GreaterThan(Literal(v, _), r) => node(r, "<", Seq(v), schema)
    case GreaterThanOrEqual(Literal(v, _), r) => node(r, "<=", Seq(v), schema)
    case In(l, list) if list.forall(_.isInstanceOf[Literal]) =>
      node(l, "in", list.map(_.asInstanceOf[Literal].value).filter(_ != null), schema)
    case InSet(l, values) => node(l, "in", values.toSeq.filter(_ != null), schema)
    case _ => None
  }

  private def node(left: Expression, operator: String, values: Seq[Any], schema: StructType): Option[ObjectNode] = {
    val json = mapper.createObjectNode().put("operator", operator)
    val named = left match {
      case attribute: Attribute =>
        IndexedRelation.physicalName(attribute, schema).map { name =>
          json.put("column", name).put("type", attribute.dataType.catalogString)
        }
      case Murmur3Hash(children, 42) if children.forall(_.isInstanceOf[Attribute]) =>
        val names = children.flatMap(c => IndexedRelation.physicalName(c.asInstanceOf[Attribute], schema))
        val (columns, types) = (json.putArray("hash_of"), json.putArray("types"))
        names.foreach(name => columns.add(name))
        children.foreach(child => types.add(child.dataType.catalogString))
        if (names.size == children.size) Some(json) else None
      case _ => None
    }
    val array = json.putArray("values")
    val known = values.forall {
      case v: Int => array.add(v); true
      case v: Long => array.add(v); true
      case v: Short => array.add(v.toInt); true
      case v: Byte => array.add(v.toInt); true
      case v: Double => array.add(v.toString); true
      case v: Float => array.add(v.toDouble.toString); true
      case v: Decimal => array.add(v.toJavaBigDecimal.toString); true
      case v: UTF8String => array.add(v.toString); true
      case _ => false
    }
    named.filter(_ => known && values.nonEmpty)
  }
}
