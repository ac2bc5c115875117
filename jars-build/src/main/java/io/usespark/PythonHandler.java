package io.usespark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;

/** Answers the questions of the shim: the only object of ours that the JVM calls in Python, over Py4J. */
public interface PythonHandler {
  /**
   * Answers one question of the shim.
   *
   * @param operation what is asked, e.g. {@code call} or {@code plan_read}
   * @param session the session that asks
   * @param arguments a JSON object of names and values: each object that Py4J carries instead costs requests of its own
   * @param objects the other arguments, of types that Py4J carries; null if there is none
   * @return a Dataset, a String or null; a Throwable to be thrown as it is; or a {@code Map} with the keys
   *     {@code condition}, {@code sqlState} and {@code message}, which becomes an AnalysisException
   */
  Object handle(String operation, SparkSession session, String arguments, Map<String, Object> objects);
}
