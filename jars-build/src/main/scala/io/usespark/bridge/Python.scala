package io.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.usespark.CallbackThreads

/** Asks the Python handler and turns its answers, errors included, into what the JVM expects. */
object Python {

  def attached: Boolean = Bridge.handler() != null

  /** Asks for a DataFrame, whose rows are not computed here. */
  def data(operation: Operation, arguments: Map[String, Any]): DataFrame =
    ask(operation, arguments) {
      case data: Dataset[_] => data.toDF()
      case other => throw new IllegalStateException(s"$operation returned $other, not a DataFrame")
    }

  /** Asks for rows: the schema and the rows of the DataFrame that Python returns. */
  def rows(operation: Operation, arguments: Map[String, Any]): (StructType, Array[InternalRow]) =
    ask(operation, arguments) {
      case data: Dataset[_] => (data.schema, data.queryExecution.executedPlan.executeCollect())
      case null => (new StructType(), Array.empty[InternalRow])
      case other => throw new IllegalStateException(s"$operation returned ${other.getClass.getName}, not rows")
    }

  /** Asks for a text; None when Python has nothing to say. */
  def text(operation: Operation, arguments: Map[String, Any]): Option[String] =
    ask(operation, arguments) {
      case null => None
      case text: String => Some(text)
      case other => throw new IllegalStateException(s"$operation returned ${other.getClass.getName}, not a text")
    }

  private def ask[T](operation: Operation, arguments: Map[String, Any])(take: AnyRef => T): T = {
    if (!attached) throw UseException.notAttached
    val values = new ju.HashMap[String, Object]()
    arguments.foreach { case (name, value) => values.put(name, value.asInstanceOf[Object]) }
    operation.check(values.keySet)
    val session = SparkSession.active
    CallbackThreads.run(session)(Bridge.instance().ask(operation.toString, session, values)) {
      case error: Throwable => throw error
      case error: ju.Map[_, _] =>
        val text = error.asScala.map { case (k, v) => String.valueOf(k) -> String.valueOf(v) }
        throw new UseException(text("condition"), text("sqlState"), text("message"))
      case answer => take(answer)
    }
  }
}
