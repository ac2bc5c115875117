package io.usespark.testing;

import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.sql.SparkSession;

/** Runs SQL as a server does: on a thread of the JVM, which Python has not started. */
public final class JvmThread {
  private final CompletableFuture<String> answer = new CompletableFuture<>();
  private final Thread thread;
  private volatile boolean interruptedAtEnd = false;

  private JvmThread(SparkSession session, String statement, String jobGroup) {
    thread =
        new Thread(
            () -> {
              try {
                SparkSession.setActiveSession(session);
                if (jobGroup != null) {
                  session.sparkContext().setJobGroup(jobGroup, "for tests", true);
                }
                answer.complete(Arrays.toString((Object[]) session.sql(statement).collect()));
              } catch (Throwable error) {
                answer.completeExceptionally(error);
              } finally {
                interruptedAtEnd = Thread.currentThread().isInterrupted();
              }
            });
    thread.start();
  }

  /** Starts to run the statement, its jobs in the group unless that is null. */
  public static JvmThread start(SparkSession session, String statement, String jobGroup) {
    return new JvmThread(session, statement, jobGroup);
  }

  /** Runs the statement and returns its rows as text. */
  public static String sql(SparkSession session, String statement) throws Exception {
    return start(session, statement, null).rows();
  }

  /** The same with the rights of a user, as a server with impersonation. */
  public static String sqlAs(String user, SparkSession session, String statement) throws Exception {
    PrivilegedExceptionAction<String> action = () -> sql(session, statement);
    return UserGroupInformation.createRemoteUser(user).doAs(action);
  }

  /** Whether the thread that runs the task has an active session. */
  public static FutureTask<Boolean> hasSession() {
    return new FutureTask<>(() -> SparkSession.getActiveSession().isDefined());
  }

  public void interrupt() {
    thread.interrupt();
  }

  /** Waits for the rows, as text. */
  public String rows() throws Exception {
    return answer.get(60, TimeUnit.SECONDS);
  }

  /** Waits for the end; whether the thread is still marked as interrupted then. */
  public boolean endsInterrupted() throws InterruptedException {
    thread.join(60_000);
    return interruptedAtEnd;
  }
}
