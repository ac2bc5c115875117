package io.usespark

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Sample}
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex

/** The effects of the rules on a query, from its optimized plan; for tests, demos and explanations. */
object ReadReport {
  def of(data: Dataset[_]): String = {
    val mapper = new ObjectMapper()
    val execution = data.asInstanceOf[classic.Dataset[_]].queryExecution
    val plan = execution.optimizedPlan
    val report = mapper.createObjectNode()
    val samples = report.putArray("samples")
    plan.collectWithSubqueries { case sample: Sample => sample }.foreach(put(samples.addObject(), _))
    val weights = report.putArray("weight_filters")
    plan.collectWithSubqueries { case filter: Filter if IndexedRelation.hasHash(filter.condition) => filter }.foreach {
      filter =>
        val node = weights.addObject()
        IndexedRelation.weightBounds(filter.condition).foreach { case (name, value) => node.put(name, value) }
        // Delta replaces the file index of a relation when it prepares the scan.
        filter
          .collectFirst {
            case IndexedRelation(index: PreparedDeltaFileIndex) => index.preparedScan.scannedSnapshot.metadata
            case IndexedRelation(index: TahoeLogFileIndex) => index.getSnapshot.metadata
          }
          .foreach { metadata =>
            node.put("configuration", IndexedRelation.json(metadata.configuration))
            node.put("schema", metadata.schemaString)
          }
    }
    val scans = report.putArray("scans")
    val joins = JoinReport.of(execution)
    plan
      .collectWithSubqueries { case IndexedRelation(index: PreparedDeltaFileIndex) => index }
      .foreach(index => put(scans.addObject(), index, joins.next(index)))
    report.toString
  }

  private[usespark] def put(json: ObjectNode, sample: Sample): Unit = {
    val reason = sample.getTagValue(SampleReason.Tag).getOrElse(SampleReason("NOT_CONSIDERED", ""))
    json
      .put("reason", reason.code)
      .put("detail", reason.detail)
      .put("lower", sample.lowerBound)
      .put("upper", sample.upperBound)
  }

  private[usespark] def put(json: ObjectNode, index: PreparedDeltaFileIndex, joins: JoinsOfScan): Unit = {
    val counts = ScanCounts.planned(index, joins.index)
    json
      .put("table", counts.table)
      .put("version", index.preparedScan.version)
      .put("is_limited", counts.isLimited)
      .put("pruned", counts.weights.files < counts.statistics.files)
    def put(name: String, count: FileCount) = json.put(s"${name}_files", count.files).put(s"${name}_bytes", count.bytes)
    counts.total.foreach(put("total", _))
    put("partition", counts.partitions)
    put("candidate", counts.statistics)
    put("cube", counts.cubes)
    put("kept", counts.weights)
    put("joined", counts.joins)
    joins.put(json.putArray("joins"))
  }
}
