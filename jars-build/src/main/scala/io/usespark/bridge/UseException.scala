package io.usespark

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.AnalysisException

/**
 * A coded error of USE as SQL clients see it: one line, with a condition and an SQLSTATE.
 *
 * The message comes whole from Python, so Spark's error-class templates are not consulted.
 */
class UseException(condition: String, state: String, text: String)
    extends AnalysisException(
      s"[$condition] $text SQLSTATE: $state",
      None,
      None,
      None,
      Some(condition),
      Map.empty[String, String],
      Array.empty[org.apache.spark.QueryContext]
    )
    with HasMessageTemplate {
  override def getCondition: String = condition
  override def getSqlState: String = state
  override def getMessage: String = message
  override def getDefaultMessageTemplate: String = text

  /** A JDBC server puts the condition before this, and clients show both as one line. */
  override def toString: String = s"$text SQLSTATE: $state"
}

/** What Spark 4.1 and later ask of an error. */
trait HasMessageTemplate {
  def getDefaultMessageTemplate: String
}

object UseException {
  def notAttached: UseException = new UseException(
    "USE_NOT_ATTACHED",
    "55000",
    "Python is not attached to this Spark application: call sql_ext.attach(spark) first."
  )

  def timeTravel: UseException = notSupported(
    "Virtual tables show the newest version of a table: leave VERSION AS OF, TIMESTAMP AS OF and their options out."
  )

  /** The refusal of a statement that would change a virtual table. */
  def readOnly(statement: String, table: String): UseException =
    notSupported(s"$statement is not available for the virtual table $table, which is for reading.")

  /** The condition of an error, or the name of its class where it has none. */
  def codeOf(error: Throwable): String = error match {
    case coded: SparkThrowable if coded.getCondition != null => coded.getCondition
    case other => other.getClass.getSimpleName
  }

  def notSupported(what: String): UseException =
    new UseException("USE_NOT_SUPPORTED", "0A000", what)
}
