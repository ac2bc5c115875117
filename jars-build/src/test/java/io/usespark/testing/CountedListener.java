package io.usespark.testing;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

/** A listener that does nothing, and counts how often Spark makes it. */
public final class CountedListener implements QueryExecutionListener {
  private static final AtomicInteger MADE = new AtomicInteger();

  public CountedListener() {
    MADE.incrementAndGet();
  }

  public static int made() {
    return MADE.get();
  }

  @Override
  public void onSuccess(String function, QueryExecution query, long nanoseconds) {}

  @Override
  public void onFailure(String function, QueryExecution query, Exception error) {}
}
