package io.usespark.testing;

import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SparkSession;

/** Runs SQL as a server does: on a thread of the JVM, which Python has not started. */
public final class JvmThread {
  private JvmThread() {}

  /** Runs the statement and returns its rows as text. */
  public static String sql(SparkSession session, String statement) throws Exception {
    CompletableFuture<String> answer = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                SparkSession.setActiveSession(session);
                answer.complete(Arrays.toString((Object[]) session.sql(statement).collect()));
              } catch (Throwable error) {
                answer.completeExceptionally(error);
              }
            });
    thread.start();
    return answer.get(60, TimeUnit.SECONDS);
  }
}
