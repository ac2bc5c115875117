package io.usespark

/**
 * Whether a writer named `format("qbeast")` for a table that is there already.
 *
 * `saveAsTable` and `insertInto` look their format up and then load the table, and tell the catalog nothing of the format.
 * Every lookup makes an instance of each registered source, and one more of the requested source.
 */
object NamedFormat {
  private val Writer = "org.apache.spark.sql.classic.DataFrameWriter"
  private val Lookup = "org.apache.spark.sql.execution.datasources.DataSource"
  private val Sources = Set(classOf[UseDataSource].getName, classOf[UseDataSource].getSuperclass.getName)
  private val named = new ThreadLocal[java.lang.Boolean]

  /** To be called whenever a source is made. */
  def made(): Unit = {
    val callers = frames(_.dropWhile(frame => Sources(frame.getClassName) || isOurs(frame)).take(2).toList)
    callers match {
      case List(lookup, writer)
          if lookup.getClassName.startsWith(Lookup) && lookup.getMethodName.contains("lookupDataSourceV2") &&
            writer.getClassName == Writer =>
        named.set(true)
      case _ => named.remove()
    }
  }

  /** Whether the writer that loads a table on this thread named the format; read once per table. */
  def taken(): Boolean = {
    val isNamed = named.get() != null && frames(_.exists(_.getClassName == Writer))
    named.remove()
    isNamed
  }

  private def isOurs(frame: StackWalker.StackFrame): Boolean = frame.getClassName.startsWith("io.usespark.NamedFormat")

  private def frames[T](of: Iterator[StackWalker.StackFrame] => T): T = {
    import scala.jdk.CollectionConverters._
    StackWalker.getInstance().walk[T](stream => of(stream.iterator().asScala))
  }
}
