package io.usespark;

/** Holds the Python handler of this JVM and what it has declared. */
public final class Bridge {
  private static volatile PythonHandler handler;
  private static volatile Declarations declarations = Declarations.empty();
  private static volatile boolean listening = false;

  private Bridge() {}

  /** Registers the handler; a later call replaces an earlier one. */
  public static void attach(PythonHandler newHandler) {
    handler = newHandler;
  }

  /** Takes the procedures and virtual tables that Python serves, as JSON. */
  public static void declare(String json) {
    declarations = Declarations.parse(json);
  }

  /** Returns the handler, or null before Python has attached. */
  public static PythonHandler handler() {
    return handler;
  }

  /** Says whether Python wants to hear of changes to the catalog. */
  public static void listen(boolean wanted) {
    listening = wanted;
  }

  public static boolean listening() {
    return listening && handler != null;
  }

  public static Declarations declarations() {
    return declarations;
  }
}
