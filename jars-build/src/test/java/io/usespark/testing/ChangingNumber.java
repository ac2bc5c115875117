package io.usespark.testing;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.api.java.UDF1;

/** A function that Spark takes for a deterministic one, and that returns a smaller number each time. */
public final class ChangingNumber implements UDF1<Long, Long> {
  private static final long serialVersionUID = 1L;
  private static final AtomicLong CALLS = new AtomicLong();

  @Override
  public Long call(Long start) {
    return start - 100 * (CALLS.getAndIncrement() % 10);
  }
}
