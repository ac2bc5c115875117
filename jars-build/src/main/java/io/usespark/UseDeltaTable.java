package io.usespark;

import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;
import org.apache.spark.sql.delta.usespark.CheckedTransaction;
import scala.Option;

/**
 * A Delta table whose inserts are indexed when the table or the write says so; read and changed as any Delta table.
 *
 * <p>Java, because the constructor of Delta's class is private in Scala and public in its bytecode.
 */
public class UseDeltaTable extends DeltaTableV2 {
  private final boolean formatIsQbeast;

  /**
   * @param table the table
   * @param formatIsQbeast whether it was loaded for a write that names {@code format("qbeast")}
   */
  public UseDeltaTable(DeltaTableV2 table, boolean formatIsQbeast) {
    super(
        table.spark(),
        table.path(),
        table.catalogTable(),
        table.tableIdentifier(),
        table.timeTravelOpt(),
        table.options());
    this.formatIsQbeast = formatIsQbeast;
  }

  /** Whether it was loaded for a write that names {@code format("qbeast")}. */
  public boolean formatIsQbeast() {
    return formatIsQbeast;
  }

  /** The transactions of ALTER TABLE. */
  @Override
  public OptimisticTransaction startTransaction(Option<Snapshot> snapshot) {
    return Python.attached()
        ? new CheckedTransaction(deltaLog(), catalogTable(), snapshot)
        : super.startTransaction(snapshot);
  }

  /** Spark compares the provider with the format that a stream into the table names. */
  @Override
  public CatalogTable v1Table() {
    CatalogTable table = super.v1Table();
    return IndexedTables.onWrite(this) ? IndexedTables.asQbeast(table) : table;
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return IndexedTables.indexes(this, info.options())
        ? new IndexedWriteBuilder(this, info)
        : new LaidOutWriteBuilder(super.newWriteBuilder(info));
  }
}
