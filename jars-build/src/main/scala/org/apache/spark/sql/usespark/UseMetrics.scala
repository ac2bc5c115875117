package org.apache.spark.sql.usespark

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.jdk.CollectionConverters._

import com.codahale.metrics.{Gauge, MetricRegistry}
import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.SparkSession

/**
 * Numbers of the application as a source of Spark's metrics. Python sets those of the service, and the listener of
 * queries adds to its own. A gauge returns the number that is stored, so no reader of metrics waits or calls Python.
 */
final class UseMetrics private (private val context: SparkContext) extends Source {
  override val sourceName: String = "use"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  private val numbers = new ConcurrentHashMap[String, AtomicLong]()
  private val mapper = new ObjectMapper()

  /** Adds to a number, which begins at 0. */
  def add(name: String, more: Long): Unit = number(name).addAndGet(more)

  /** Sets the numbers of a JSON object, and returns all numbers as one. */
  def exchange(json: String): String = {
    mapper.readTree(json).properties().forEach(entry => number(entry.getKey).set(entry.getValue.longValue()))
    val all = mapper.createObjectNode()
    numbers.asScala.foreach { case (name, value) => all.put(name, value.get) }
    mapper.writeValueAsString(all)
  }

  private def number(name: String): AtomicLong = numbers.computeIfAbsent(
    name,
    _ => {
      val made = new AtomicLong()
      metricRegistry.register(name, new Gauge[Long] { override def getValue: Long = made.get })
      made
    }
  )
}

object UseMetrics {
  @volatile private var registered: Option[UseMetrics] = None

  /** The source of the session's application; the first call registers it. */
  def of(session: SparkSession): UseMetrics = synchronized {
    val context = session.sparkContext
    registered.filter(_.context eq context).getOrElse {
      val source = new UseMetrics(context)
      SparkEnv.get.metricsSystem.registerSource(source)
      registered = Some(source)
      source
    }
  }
}
