package io.usespark

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.usespark.ScanListener

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
    val database = relation.catalogTable.flatMap(_.identifier.database)
    ScanListener.noteTable(session, metadata.configuration, database)
    val conditions =
      if (IndexedRelation.isIndexed(metadata.configuration)) Conditions.json(filters, metadata.schema) else None
    val answer =
      if (conditions.isEmpty) None
      else
        Python.text(
          Operation.PLAN_READ,
          Map("configuration" -> IndexedRelation.json(metadata.configuration), "conditions" -> conditions.get)
        )
    answer.map(BlockPruning.parse).fold(scan) { pruning =>
      // Also where nothing is dropped: what is marked as judged is not judged again for each node of the scan.
      val kept = index.preparedScan.files.filter(pruning.keep)
      scan.transformUp {
        case same: LogicalRelation if same eq relation =>
          val files = same.relation.asInstanceOf[HadoopFsRelation]
          same.copy(relation = files.copy(location = new BlockFileIndex(index, pruning, kept))(files.sparkSession))
      }
    }
  }
}
