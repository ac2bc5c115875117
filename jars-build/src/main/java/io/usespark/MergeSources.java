package io.usespark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.delta.commands.MergeIntoCommand;
import org.apache.spark.sql.delta.commands.merge.MergeIntoMaterializeSource.MergeSource;

/**
 * The source of a MERGE that is running.
 *
 * <p>Java, because Delta's method is protected in Scala and public in its bytecode.
 */
public final class MergeSources {
  private MergeSources() {}

  /** The rows as the statement reads them. */
  public static Dataset<Row> rows(MergeIntoCommand merge) {
    return merge.getMergeSource().df();
  }

  /** Whether Delta has stored them for the statement. */
  public static boolean areStored(MergeIntoCommand merge) {
    return merge.getMergeSource().isMaterialized();
  }

  /** Whether Delta has not stored them, since it has found that they are the same each time. */
  public static boolean areUnchanging(MergeIntoCommand merge) {
    MergeSource source = merge.getMergeSource();
    return source.materializeReason().toString().equals("notMaterializedAuto");
  }
}
