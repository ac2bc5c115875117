package io.usespark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.usespark.SessionSettings;
import py4j.GatewayServer;

/**
 * Holds the Python handler of this JVM and what it has declared.
 *
 * <p>What changes it are methods of the instance: SQL's {@code java_method} reaches static ones, and no client of a
 * server may attach, declare or listen.
 */
public final class Bridge {
  private static final Bridge INSTANCE = new Bridge();
  private static volatile PythonHandler handler;
  private static volatile Declarations declarations = Declarations.empty();
  private static volatile boolean listening = false;

  private Bridge() {}

  public static Bridge instance() {
    return INSTANCE;
  }

  /** Sends all callbacks of the gateway to Python's server on this port of 127.0.0.1, authenticated with its token. */
  public void authenticateCallbacks(GatewayServer gateway, int port, String token) {
    AuthenticatedPythonClient.install(gateway, port, token);
  }

  /** Registers the handler; a later call replaces an earlier one. */
  public void attach(PythonHandler newHandler) {
    handler = newHandler;
  }

  /** Asks the handler; see {@link PythonHandler#handle}. */
  Object ask(String operation, SparkSession session, String arguments, Map<String, Object> objects) {
    return handler.handle(operation, session, arguments, objects);
  }

  /** Takes the procedures, virtual tables and settings that Python serves, as JSON. */
  public void declare(String json) {
    declarations = Declarations.parse(json);
    SessionSettings.register(declarations.settings());
  }

  /** Says whether Python wants to hear of changes to the catalog. */
  public void listen(boolean isListening) {
    listening = isListening;
  }

  /** Returns the handler, or null before Python has attached. */
  public static PythonHandler handler() {
    return handler;
  }

  public static boolean listening() {
    return listening && handler != null;
  }

  public static Declarations declarations() {
    return declarations;
  }
}
