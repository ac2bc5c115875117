package io.usespark

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Sample}
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex

/** What the rules did to a query, read off its optimized plan; for tests, demos and explanations. */
object ReadReport {
  def of(data: Dataset[_]): String = {
    val mapper = new ObjectMapper()
    val plan = data.asInstanceOf[classic.Dataset[_]].queryExecution.optimizedPlan
    val report = mapper.createObjectNode()
    val samples = report.putArray("samples")
    plan.collectWithSubqueries { case sample: Sample =>
      val reason = sample.getTagValue(SampleReason.Tag).getOrElse(SampleReason("NOT_CONSIDERED", ""))
      samples
        .addObject()
        .put("reason", reason.code)
        .put("detail", reason.detail)
        .put("lower", sample.lowerBound)
        .put("upper", sample.upperBound)
    }
    report.put(
      "weight_filters",
      plan.collectWithSubqueries { case f: Filter if IndexedRelation.hasHash(f.condition) => f }.size
    )
    val scans = report.putArray("scans")
    plan.collectWithSubqueries { case relation @ IndexedRelation(index: PreparedDeltaFileIndex) =>
      val kept = index.preparedScan.files
      val candidates = index match {
        case blocks: BlockFileIndex => blocks.candidates
        case _ => kept
      }
      def bytes(files: Seq[AddFile]) = files.map(_.size).sum
      scans
        .addObject()
        .put("pruned", kept.size < candidates.size)
        .put("candidate_files", candidates.size)
        .put("candidate_bytes", bytes(candidates))
        .put("kept_files", kept.size)
        .put("kept_bytes", bytes(kept))
    }
    report.toString
  }
}
