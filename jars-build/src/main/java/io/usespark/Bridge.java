package io.usespark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;

/**
 * Holds the Python handler of this JVM and what it has declared.
 *
 * <p>What changes it are methods of the instance: SQL's {@code java_method} reaches static ones, and no client of a
 * server may attach, declare or listen.
 */
public final class Bridge {
  private static final Bridge INSTANCE = new Bridge();
  private static volatile Attached attached;
  private static volatile Declarations declarations = Declarations.empty();
  private static volatile boolean listening = false;

  private record Attached(PythonHandler handler, String secret) {}

  private Bridge() {}

  public static Bridge instance() {
    return INSTANCE;
  }

  /** Registers the handler, which is asked with this secret; a later call replaces an earlier one. */
  public void attach(PythonHandler newHandler, String newSecret) {
    attached = new Attached(newHandler, newSecret);
  }

  /** Asks the handler; see {@link PythonHandler#handle}. */
  Object ask(String operation, SparkSession session, Map<String, Object> arguments) {
    Attached to = attached;
    return to.handler().handle(to.secret(), operation, session, arguments);
  }

  /** Takes the procedures and virtual tables that Python serves, as JSON. */
  public void declare(String json) {
    declarations = Declarations.parse(json);
  }

  /** Says whether Python wants to hear of changes to the catalog. */
  public void listen(boolean wanted) {
    listening = wanted;
  }

  /** Returns the handler, or null before Python has attached. */
  public static PythonHandler handler() {
    Attached to = attached;
    return to == null ? null : to.handler();
  }

  public static boolean listening() {
    return listening && attached != null;
  }

  public static Declarations declarations() {
    return declarations;
  }
}
