package io.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.usespark.CallbackThreads

/** Calls the Python handler and converts its results, including errors, for the JVM. */
object Python {
  private val mapper = new ObjectMapper()

  def attached: Boolean = Bridge.handler() != null

  /** Requests a DataFrame, whose rows are not computed here. */
  def data(operation: Operation, arguments: Map[String, Any]): DataFrame =
    ask(operation, arguments) {
      case data: Dataset[_] => data.toDF()
      case other => throw new IllegalStateException(s"$operation returned $other, not a DataFrame")
    }

  /** Requests rows: the schema and the rows of the DataFrame that Python returns. */
  def rows(operation: Operation, arguments: Map[String, Any]): (StructType, Array[InternalRow]) =
    ask(operation, arguments) {
      case data: Dataset[_] => (data.schema, data.queryExecution.executedPlan.executeCollect())
      case null => (new StructType(), Array.empty[InternalRow])
      case other => throw new IllegalStateException(s"$operation returned ${other.getClass.getName}, not rows")
    }

  /** Requests a text; None if Python returns none. */
  def text(
      operation: Operation,
      arguments: Map[String, Any],
      session: SparkSession = SparkSession.active
  ): Option[String] =
    ask(operation, arguments, session) {
      case null => None
      case text: String => Some(text)
      case other => throw new IllegalStateException(s"$operation returned ${other.getClass.getName}, not a text")
    }

  private def ask[T](operation: Operation, arguments: Map[String, Any], session: SparkSession = SparkSession.active)(
      take: AnyRef => T
  ): T = {
    if (!attached) throw UseException.notAttached
    operation.check(arguments.keySet.asJava)
    val (plain, others) = arguments.partition { case (_, value) => isPlain(value) }
    val json = mapper.writeValueAsString(plain.asJava)
    val objects =
      if (others.isEmpty) null else new ju.HashMap[String, Object](others.asInstanceOf[Map[String, Object]].asJava)
    CallbackThreads.run(session)(Bridge.instance().ask(operation.toString, session, json, objects)) {
      case error: Throwable => throw error
      case error: ju.Map[_, _] =>
        val text = error.asScala.map { case (k, v) => String.valueOf(k) -> String.valueOf(v) }
        throw new UseException(text("condition"), text("sqlState"), text("message"))
      case answer => take(answer)
    }
  }

  /** Whether JSON has the value. */
  private def isPlain(value: Any): Boolean = value match {
    case _: String | _: Boolean | _: Int | _: Long => true
    case number: Double => !number.isNaN && !number.isInfinite
    case _ => false
  }
}
