package org.apache.spark.sql.delta.usespark

import java.lang.invoke.{MethodHandle, MethodHandles}
import java.{util => ju}

import scala.annotation.nowarn
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.column.page.PageWriter
import org.apache.parquet.column.values.ValuesWriter
import org.apache.parquet.column.values.dictionary.DictionaryValuesWriter
import org.apache.parquet.column.values.fallback.FallbackValuesWriter
import org.apache.parquet.hadoop.ParquetOutputFormat.{PAGE_ROW_COUNT_LIMIT, WRITE_SUPPORT_CLASS}
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.io.api.RecordConsumer
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow

/**
 * Pages whose rows depend on their column.
 *
 * Parquet's writer has one limit of rows for the pages of all columns. It also decides by the first page of a column
 * whether the column has a dictionary, so that small pages lose dictionaries that pay for themselves in a file. With
 * these settings, pages end where `otree/pages.py` says.
 */
object ColumnPages extends Logging {
  // Python sets these, beside Parquet's limit of rows, which is that of the columns with large values.
  private val MostRows = "use.pages.mostRows"
  private val LeastBytes = "use.pages.leastBytes"
  private val SortedColumns = "use.pages.sortedColumns"
  // Set by `configure`.
  private val Rows = "use.pages.rows"
  private val Support = "use.pages.support"
  private val json = new ObjectMapper()

  /**
   * Has the Parquet files of a task written with pages by column, if its settings say so.
   *
   * @param settings those of the task
   * @param storedName the name that a top-level column has in files
   */
  def configure(settings: Configuration, storedName: String => String): Unit = {
    val rows = settings.getInt(PAGE_ROW_COUNT_LIMIT, Int.MaxValue)
    val most = settings.getInt(MostRows, 0)
    val support = settings.get(WRITE_SUPPORT_CLASS)
    if (rows < most && support != null && support != classOf[PagedWriteSupport].getName && WriterInternals.available) {
      settings.setInt(Rows, rows)
      settings.set(Support, support)
      settings.setInt(PAGE_ROW_COUNT_LIMIT, most)
      settings.set(WRITE_SUPPORT_CLASS, classOf[PagedWriteSupport].getName)
      settings.set(SortedColumns, json.writeValueAsString(sortedColumns(settings).map(storedName)))
    }
  }

  private[usespark] def support(settings: Configuration): WriteSupport[InternalRow] =
    settings
      .getClassByName(settings.get(Support))
      .getConstructor()
      .newInstance()
      .asInstanceOf[WriteSupport[InternalRow]]

  /** The pages of a row group; None if the consumer is not Parquet's own, such as the one that logs each value. */
  def of(settings: Configuration, consumer: RecordConsumer): Option[ColumnPages] =
    WriterInternals
      .columns(consumer)
      .map(
        new ColumnPages(
          consumer,
          _,
          settings.getInt(Rows, 0),
          settings.getInt(MostRows, 0),
          settings.getInt(LeastBytes, 0),
          sortedColumns(settings).toSet
        )
      )

  private def sortedColumns(settings: Configuration): Array[String] =
    json.readValue(settings.get(SortedColumns, "[]"), classOf[Array[String]])
}

/** Spark's way to write rows, with pages by column. */
final class PagedWriteSupport extends WriteSupport[InternalRow] {
  private var settings: Configuration = _
  private var spark: WriteSupport[InternalRow] = _
  private var pages: Option[ColumnPages] = None

  override def getName: String = spark.getName

  override def init(configuration: Configuration): WriteSupport.WriteContext = {
    settings = configuration
    spark = ColumnPages.support(configuration)
    spark.init(configuration): @nowarn("cat=deprecation")
  }

  override def prepareForWrite(consumer: RecordConsumer): Unit = {
    spark.prepareForWrite(consumer)
    pages = ColumnPages.of(settings, consumer)
  }

  override def write(row: InternalRow): Unit = {
    spark.write(row)
    pages.foreach(_.rowWritten())
  }

  override def finalizeWrite(): WriteSupport.FinalizedWriteContext = spark.finalizeWrite()
}

/**
 * Ends the pages of a row group.
 *
 * @param rows of a page with large values, a multiple of which the others have
 * @param mostRows of any page
 * @param leastBytes of a page that has fewer rows than that, after encoding
 * @param sorted columns along which rows are sorted. Their next pages have other values: so their pages are small, because
 *   filters skip by them, and a dictionary would be read whole by each query that reads one page
 */
final private[usespark] class ColumnPages(
    consumer: RecordConsumer,
    writers: Seq[WriterInternals.Column],
    rows: Int,
    mostRows: Int,
    leastBytes: Int,
    sorted: Set[String]
) {
  // Sorted columns keep their dictionary only if it pays within so many rows.
  private val sortedRows = math.max(rows / 8, 1)
  private val columns = writers.map(new PagedColumn(_, sorted))
  private var written = 0L

  def rowWritten(): Unit = {
    written += 1
    if (written == sortedRows) endPages(columns.filter(_.isSorted))
    if (written % rows == 0) endPages(columns)
  }

  private def endPages(of: Seq[PagedColumn]): Unit = {
    // Nulls of groups may not have reached their columns.
    consumer.flush()
    of.foreach(column => if (column.isFull(written, leastBytes, mostRows)) column.endPage())
  }
}

final private class PagedColumn(writer: WriterInternals.Column, sorted: Set[String]) {
  val isSorted: Boolean = writer.path.length == 1 && sorted(writer.path.head)

  def endPage(): Unit = writer.writePage()

  /** Whether the page, which has all rows that are in no earlier one, has enough of them. */
  def isFull(written: Long, leastBytes: Int, mostRows: Int): Boolean = {
    val before = writer.rowsInPages
    val values = writer.values.toLong
    if (values == 0) false
    else if (before > 0) isSorted || writer.bytesInPages.toDouble / before * (written - before) >= leastBytes
    else
      writer.dictionary match {
        case None => writer.bytes >= leastBytes
        case Some(dictionary) =>
          val encoded = values * dictionary.bits / 8
          // Parquet gives up a dictionary unless it pays in the first page, where the encoding adds a little.
          if (pays(dictionary, values, writer.bytes)) encoded >= leastBytes
          else isSorted || !pays(dictionary.after(mostRows, values), mostRows, writer.bytes * mostRows / values)
      }
  }

  private def pays(dictionary: WriterInternals.Dictionary, values: Long, plainBytes: Long): Boolean =
    dictionary.bytes + values * dictionary.bits / 8 * 9 / 8 < plainBytes
}

/** What Parquet's writer does not offer: its columns, and the end of a page of one of them. */
private[usespark] object WriterInternals extends Logging {
  private val base = "org.apache.parquet.column.impl."

  /** The dictionary of a column so far. */
  final case class Dictionary(values: Int, bytes: Long) {
    def bits: Int = 32 - Integer.numberOfLeadingZeros(math.max(values - 1, 0))

    /**
     * What it would be after more rows, if those are drawn evenly from the values of the column: of N values, n rows have
     * `N * (1 - exp(-n / N))`. Rare values make a dictionary larger than that, so that waiting can be in vain, but not
     * giving up.
     */
    def after(rows: Long, rowsSoFar: Long): Dictionary = {
      val share = values.toDouble / rowsSoFar
      // The rows for each of the N values, by bisection.
      var (low, high) = (0.0, 1 / share)
      for (_ <- 1 to 40) {
        val middle = (low + high) / 2
        if (-math.expm1(-middle) / middle > share) low = middle else high = middle
      }
      val all = rowsSoFar / high
      val expected = math.max(math.round(-math.expm1(-rows / all) * all), values.toLong)
      Dictionary(expected.toInt, bytes * expected / math.max(values, 1))
    }
  }

  final private class Handles {
    private val lookup = MethodHandles.lookup()
    private val column = Class.forName(base + "ColumnWriterBase")

    private def field(owner: Class[_], name: String): MethodHandle = {
      val field = owner.getDeclaredField(name)
      field.setAccessible(true)
      lookup.unreflectGetter(field)
    }

    private def method(owner: Class[_], name: String): MethodHandle = {
      val method = owner.getDeclaredMethod(name)
      method.setAccessible(true)
      lookup.unreflect(method)
    }

    val consumer: Class[_] = Class.forName("org.apache.parquet.io.MessageColumnIO$MessageColumnIORecordConsumer")
    val store: MethodHandle = field(consumer, "columns")
    val columns: MethodHandle = field(Class.forName(base + "ColumnWriteStoreBase"), "columns")
    val pageWriter: MethodHandle = field(column, "pageWriter")
    val data: MethodHandle = field(column, "dataColumn")
    val values: MethodHandle = method(column, "getValueCount")
    val rowsInPages: MethodHandle = method(column, "getRowsWrittenSoFar")
    val writePage: MethodHandle = method(column, "writePage")
    val fellBack: MethodHandle = field(classOf[FallbackValuesWriter[_, _]], "fellBackAlready")
    val dictionaryBytes: MethodHandle = field(classOf[DictionaryValuesWriter], "dictionaryByteSize")
    val dictionaryValues: MethodHandle = method(classOf[DictionaryValuesWriter], "getDictionarySize")
  }

  private lazy val handles: Option[Handles] =
    try Some(new Handles)
    catch {
      case NonFatal(error) =>
        logWarning(
          "This version of Parquet's writer is not known. All columns of a file have pages of equal rows.",
          error
        )
        None
    }

  def available: Boolean = handles.isDefined

  def columns(consumer: RecordConsumer): Option[Seq[Column]] =
    handles.filter(_.consumer.isInstance(consumer)).map { of =>
      val writers = of.columns
        .invokeWithArguments(of.store.invokeWithArguments(consumer))
        .asInstanceOf[ju.Map[ColumnDescriptor, AnyRef]]
      writers.asScala.map { case (descriptor, writer) => new Column(of, descriptor.getPath.toSeq, writer) }.toSeq
    }

  /** A column of the row group that is being written. */
  final class Column(of: Handles, val path: Seq[String], writer: AnyRef) {
    private val pages = get[PageWriter](of.pageWriter)
    private val data = get[ValuesWriter](of.data)

    private def get[T](handle: MethodHandle, owner: AnyRef = writer): T =
      handle.invokeWithArguments(owner).asInstanceOf[T]

    /** Values in the page, nulls among them. */
    def values: Int = get[Int](of.values)

    /** Bytes of the values in the page, before they are encoded with a dictionary or compressed. */
    def bytes: Long = data.getBufferedSize

    def rowsInPages: Long = get[Long](of.rowsInPages)

    /** Bytes of all earlier pages, compressed. */
    def bytesInPages: Long = pages.getMemSize

    /** None if there never was one, or if it was given up. */
    def dictionary: Option[Dictionary] =
      data match {
        case fallback: FallbackValuesWriter[_, _] if !get[Boolean](of.fellBack, fallback) =>
          (fallback.initialWriter: Any) match {
            case values: DictionaryValuesWriter =>
              Some(Dictionary(get[Int](of.dictionaryValues, values), get[Long](of.dictionaryBytes, values)))
            case _ => None
          }
        case _ => None
      }

    def writePage(): Unit = of.writePage.invokeWithArguments(writer)
  }
}
