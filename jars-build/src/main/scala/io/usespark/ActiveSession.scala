package io.usespark

import org.apache.spark.sql.SparkSession

/** Work for Python with its session active: Delta reads settings from the active session of the thread. */
private[usespark] object ActiveSession {
  def within[T](session: SparkSession)(body: => T): T = {
    val before = SparkSession.getActiveSession
    SparkSession.setActiveSession(session)
    try body
    finally before.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession)
  }
}
