package io.usespark;

import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;

/**
 * A Delta table whose inserts are indexed when the table says so; read and changed as any Delta table.
 *
 * <p>Java, because the constructor of Delta's class is private in Scala and public in its bytecode.
 */
public class UseDeltaTable extends DeltaTableV2 {
  public UseDeltaTable(DeltaTableV2 table) {
    super(
        table.spark(),
        table.path(),
        table.catalogTable(),
        table.tableIdentifier(),
        table.timeTravelOpt(),
        table.options());
  }

  /** Spark compares the provider with the format that a stream into the table names. */
  @Override
  public CatalogTable v1Table() {
    CatalogTable table = super.v1Table();
    return IndexedTables.onWrite(this) ? IndexedTables.asQbeast(table) : table;
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return IndexedTables.indexes(this, info) ? new IndexedWriteBuilder(this, info) : super.newWriteBuilder(info);
  }
}
