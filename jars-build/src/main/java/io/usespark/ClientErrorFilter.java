package io.usespark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import javax.security.sasl.SaslException;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.spark.SparkException;
import org.apache.spark.SparkThrowable;
import org.apache.thrift.transport.TTransportException;

/**
 * Logs the errors of a server's clients as one line, and every other error with its stack.
 *
 * <p>An error is the client's if it has an error condition whose SQLSTATE says so: bad syntax, an unknown name, bad data
 * and the like. Errors without a condition, internal errors, and those of storage and network keep their stacks. So do
 * all errors while the root logger is at the level debug.
 */
public final class ClientErrorFilter extends AbstractFilter {
  /** Classes of SQLSTATE that are about a statement, its arguments or the data that it reads. */
  private static final Set<String> CLIENT_CLASSES =
      Set.of("07", "0A", "21", "22", "23", "25", "2F", "3D", "3F", "40", "42", "44", "54", "55", "56", "57", "P0");

  /** What reports connections that end before or during the login. */
  private static final Set<String> CONNECTION_LOGGERS =
      Set.of("org.apache.thrift.transport.TSaslTransport", "org.apache.thrift.server.TThreadPoolServer");

  private static final int LONGEST_LINE = 1000;
  private static final int DEEPEST_CAUSE = 20;

  /** Whether the last error of this thread was a refused login, which its connection reports once more. */
  private final ThreadLocal<Boolean> loginRefused = ThreadLocal.withInitial(() -> false);

  /** Starts to filter what this JVM logs. */
  public void install() {
    if (LogManager.getContext(false) instanceof LoggerContext context) {
      start();
      context.getConfiguration().getRootLogger().addFilter(this);
      context.updateLoggers();
    }
  }

  @Override
  public Result filter(LogEvent event) {
    Throwable error = event.getThrown();
    if (error == null || LogManager.getRootLogger().isDebugEnabled()) return Result.NEUTRAL;
    boolean connection = CONNECTION_LOGGERS.contains(event.getLoggerName());
    String line = connection ? connectionLine(error) : line(error);
    if (line == null) return Result.NEUTRAL;
    boolean repeated = connection && loginRefused.get();
    loginRefused.set(connection && find(error, SaslException.class) != null);
    if (!repeated) {
      String message = event.getMessage().getFormattedMessage().strip().replaceFirst("[,.:\\s]+$", "");
      LogManager.getLogger(event.getLoggerName()).log(event.getLevel(), message.isEmpty() ? line : message + ": " + line);
    }
    return Result.DENY;
  }

  /** Returns what the log says about an error of a client; null for any other error. */
  public static String line(Throwable error) {
    Throwable at = error;
    for (int depth = 0; at != null && depth < DEEPEST_CAUSE; depth++) {
      if (at instanceof SparkThrowable known && known.getCondition() != null) {
        return isOfClient(known) ? firstLine(at) : null;
      }
      if (!isWrapper(at)) return null;
      at = at.getCause();
    }
    return null;
  }

  /** Returns what the log says about a login or a connection that failed; null when the server's code did. */
  public static String connectionLine(Throwable error) {
    Throwable login = find(error, SaslException.class);
    if (login != null) return firstLine(login.getCause() == null ? login : login.getCause());
    Throwable connection = find(error, TTransportException.class);
    return connection == null ? null : firstLine(connection);
  }

  private static boolean isOfClient(SparkThrowable error) {
    String state = error.getSqlState();
    if (state == null || error.getCondition().startsWith("_LEGACY")) return false;
    return error instanceof UseException ? !state.startsWith("XX") : CLIENT_CLASSES.contains(state.substring(0, 2));
  }

  private static boolean isWrapper(Throwable error) {
    return error.getClass() == RuntimeException.class
        || error instanceof HiveSQLException
        || error instanceof SparkException
        || error instanceof ExecutionException
        || error instanceof InvocationTargetException
        || error instanceof UndeclaredThrowableException;
  }

  private static Throwable find(Throwable error, Class<? extends Throwable> type) {
    Throwable at = error;
    for (int depth = 0; at != null && depth < DEEPEST_CAUSE; depth++, at = at.getCause()) {
      if (type.isInstance(at)) return at;
    }
    return null;
  }

  private static String firstLine(Throwable error) {
    String message = error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
    String line = message.strip().lines().findFirst().orElse(error.getClass().getSimpleName()).strip();
    return line.length() <= LONGEST_LINE ? line : line.substring(0, LONGEST_LINE) + "...";
  }
}
