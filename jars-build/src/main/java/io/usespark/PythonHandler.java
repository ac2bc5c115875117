package io.usespark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;

/** The one door from the JVM to Python: implemented by a Python object over Py4J. */
public interface PythonHandler {
  /**
   * Answers one question of the shim.
   *
   * @param secret what was given to {@link Bridge#attach} with this handler
   * @param operation what is asked, e.g. {@code call} or {@code plan_read}
   * @param session the session that asks
   * @param arguments names and values, of types that Py4J carries
   * @return a Dataset, a String or null; a Throwable to be thrown as it is; or a {@code Map} with the keys
   *     {@code condition}, {@code sqlState} and {@code message}, which becomes an AnalysisException
   */
  Object handle(String secret, String operation, SparkSession session, Map<String, Object> arguments);
}
