package io.usespark

import java.{util => ju}

import org.apache.hadoop.fs.Path
import org.apache.spark.{OneToOneDependency, Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Row, SQLContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns, V1Scan}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.sources.{BaseRelation, TableScan}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Rows that Python computes, such as `db.t.optimizations`: the schema is declared, and the rows are requested
 * when they are read, by the names of the needed columns.
 */
final class VirtualTable(override val name: String, override val schema: StructType, ask: Seq[String] => DataFrame)
    extends Table
    with SupportsRead {
  override def capabilities(): ju.Set[TableCapability] = ju.EnumSet.of(TableCapability.BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new ScanBuilder with SupportsPushDownRequiredColumns {
      private var columns = schema
      // Whole columns: the rows that come have their structs with all fields.
      override def pruneColumns(required: StructType): Unit =
        columns = StructType(schema.filter(field => required.fieldNames.contains(field.name)))
      override def build(): Scan = new VirtualScan(columns, () => rows(columns), name)
    }

  private def rows(columns: StructType): DataFrame = {
    val data = ask(columns.fieldNames.toSeq)
    val typeByName = data.schema.map(field => field.name -> field.dataType.catalogString).toMap
    columns.foreach(field =>
      require(
        typeByName.get(field.name).contains(field.dataType.catalogString),
        s"$name declares ${field.toDDL} but returned ${data.schema.toDDL}"
      )
    )
    data
  }
}

object VirtualTable {

  /** `<table>.<kind>`: about one table. */
  def of(table: String, kind: String, schema: StructType): VirtualTable =
    new VirtualTable(
      s"$table.$kind",
      schema,
      _ => Python.data(Operation.VIRTUAL_TABLE, Map("table" -> table, "kind" -> kind))
    )

  /** `use_catalog.system_lake_tables.<kind>`: about all tables. */
  def ofSystem(name: String, kind: String, schema: StructType): VirtualTable =
    new VirtualTable(
      name,
      schema,
      columns => Python.data(Operation.SYSTEM_TABLE, Map("kind" -> kind, "columns" -> columns.mkString(",")))
    )
}

/** The DataFrame behind a virtual table as a scan: its partitions are those of the scan, and nothing is collected. */
final class VirtualScan(schema: StructType, data: () => DataFrame, name: String) extends V1Scan {
  override def readSchema(): StructType = schema
  override def description(): String = name

  override def toV1TableScan[T <: BaseRelation with TableScan](context: SQLContext): T = {
    val whole = data()
    val rows = whole.select(schema.fieldNames.toIndexedSeq.map(n => whole.col(s"`$n`")): _*)
    val relation = new BaseRelation with TableScan {
      override def sqlContext: SQLContext = context
      override def schema: StructType = VirtualScan.this.schema
      override def needConversion: Boolean = false
      override def buildScan(): RDD[Row] = new DeferredRows(rows).asInstanceOf[RDD[Row]]
    }
    relation.asInstanceOf[T]
  }
}

/** The rows of a DataFrame; it is executed when the first partition is requested, and not while a query is planned. */
final class DeferredRows(@transient data: DataFrame) extends RDD[InternalRow](data.sparkSession.sparkContext, Nil) {
  @transient private lazy val rows = data.queryExecution.toRdd
  override protected def getDependencies: Seq[OneToOneDependency[InternalRow]] = Seq(new OneToOneDependency(rows))
  override protected def getPartitions: Array[Partition] = rows.partitions
  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] =
    firstParent[InternalRow].iterator(split, context)
}

object Identifiers {

  /** The dotted name as SQL reads it back: parts that need backquotes have them. */
  def quoted(parts: Seq[String]): String = parts
    .map { part =>
      if (part.matches("[a-zA-Z_][a-zA-Z0-9_]*")) part else "`" + part.replace("`", "``") + "`"
    }
    .mkString(".")

  /** The one name of a Delta table: as its catalog has it, or by the path of its root. */
  def of(catalog: String, table: DeltaTableV2): String = of(catalog, table.catalogTable, table.deltaLog.dataPath)

  def of(catalog: String, known: Option[CatalogTable], path: => Path): String = known match {
    case Some(table) => quoted((catalog +: table.identifier.database.toSeq) :+ table.identifier.table)
    case None => quoted(Seq(catalog, "delta", TablePaths.shown(SparkSession.active, path)))
  }
}
