package io.usespark

import java.util.{Collections, IdentityHashMap}

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
    else {
      // The nodes of a scan are visited from the top; those below have no filter that was not considered with it.
      val judged = Collections.newSetFromMap(new IdentityHashMap[LogicalPlan, java.lang.Boolean]())
      plan.transformWithSubqueries {
        case scan @ PhysicalOperation(_, filters, relation: LogicalRelation) if !judged.contains(scan) =>
          relation match {
            case IndexedRelation(index: PreparedDeltaFileIndex) if !index.isInstanceOf[BlockFileIndex] =>
              scan.foreach(judged.add)
              try prune(scan, filters, relation, index)
              catch {
                case NonFatal(error) =>
                  logWarning("Files were not skipped by the index; Delta's selection stands.", error)
                  scan
              }
            case _ => scan
          }
      }
    }

  private def prune(
      scan: LogicalPlan,
      filters: Seq[Expression],
      relation: LogicalRelation,
      index: PreparedDeltaFileIndex
  ): LogicalPlan = {
    val metadata = index.preparedScan.scannedSnapshot.metadata
    val database = relation.catalogTable.flatMap(table => InheritedProperties.databaseOf(table.identifier))
    ScanListener.noteTable(session, metadata.configuration, database)
    val conditions =
      if (IndexedRelation.isIndexed(metadata.configuration)) Conditions.json(filters, metadata.schema) else None
    conditions.flatMap(BlockPruning.of(session, metadata.configuration, _)).fold(scan) { pruning =>
      // Also where nothing is dropped: the nodes of the new scan are visited next, and what is marked is not judged again.
      val kept = index.preparedScan.files.filter(pruning.keep)
      scan.transformUp {
        case same: LogicalRelation if same eq relation =>
          val files = same.relation.asInstanceOf[HadoopFsRelation]
          same.copy(relation = files.copy(location = new BlockFileIndex(index, pruning, kept))(files.sparkSession))
      }
    }
  }
}
