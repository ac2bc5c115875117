package io.usespark;

import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOptions;
import org.apache.spark.sql.delta.LastCheckpointInfo;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Metadata;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/** Members of Delta that are protected in Scala and public in its bytecode: Java, since Scala would not compile it. */
public final class DeltaAccess {
  private DeltaAccess() {}

  /** Sets the metadata of a transaction that may have set it before. */
  public static void setMetadata(OptimisticTransaction transaction, Metadata metadata) {
    transaction.updateMetadataInternal(metadata, true);
  }

  /** Adds high-water marks of identity columns that files to be committed have used. */
  public static void addIdentityMarks(OptimisticTransaction transaction, Seq<Tuple2<String, Object>> marks) {
    transaction.updatedIdentityHighWaterMarks().appendAll(marks);
  }

  /** Writes a checkpoint of a version. */
  public static LastCheckpointInfo writeCheckpoint(DeltaLog log, Snapshot version, Option<CatalogTable> table) {
    return log.writeCheckpointFiles(version, table);
  }

  /** Whether a write has an option, in whatever case it was written. */
  public static boolean hasOption(DeltaOptions options, String name) {
    return options.options().contains(name);
  }
}
