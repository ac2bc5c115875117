package io.usespark

import java.{util => ju}

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** `<table>.<kind>`, such as `db.t.optimizations`: the schema is declared, the rows are asked for when read. */
final class VirtualTable(tableName: String, kind: String, override val schema: StructType)
    extends Table
    with SupportsRead {
  override def name(): String = s"$tableName.$kind"
  override def capabilities(): ju.Set[TableCapability] = ju.EnumSet.of(TableCapability.BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = new ScanBuilder {
    override def build(): Scan = new RowsScan(schema, () => rows(), VirtualTable.this.name())
  }

  private def rows() = {
    val (found, data) = Python.rows("virtual_table", Map("table" -> tableName, "kind" -> kind))
    require(
      found.map(_.dataType.catalogString) == schema.map(_.dataType.catalogString),
      s"virtual table $kind declares ${schema.toDDL} but returned ${found.toDDL}"
    )
    data
  }
}

object Identifiers {

  /** The dotted name as SQL reads it back: parts that need backquotes have them. */
  def quoted(parts: Seq[String]): String = parts
    .map { part =>
      if (part.matches("[a-zA-Z_][a-zA-Z0-9_]*")) part else "`" + part.replace("`", "``") + "`"
    }
    .mkString(".")
}
