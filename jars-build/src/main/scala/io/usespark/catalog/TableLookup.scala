package io.usespark

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets
import java.{util => ju}

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, Path}
import org.apache.spark.sql.{AnalysisException, DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog, TableWritePrivilege}
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.util.SerializableConfiguration

/**
 * What a table name stands for: `kind` is delta, view, virtual, version, inside, files, other, missing or invalid;
 * `detail` is the table meant, where another one is.
 */
final class FoundTable(val kind: String, val name: String, val detail: String, val table: DeltaTableV2) {
  private def root: Path = table.deltaLog.dataPath

  /** The root of the table with the scheme and authority of its file system, however it was named. */
  def location: String = root.toString
  def state: TableState = new TableState(table.update(), table.catalogTable)

  /** What lies below the table, the log left out: one row per file with its `path`, listed by Spark's tasks. */
  def listFiles(session: SparkSession): DataFrame = {
    val classicSession = session.asInstanceOf[classic.SparkSession]
    val conf = new SerializableConfiguration(table.deltaLog.newDeltaHadoopConf())
    val tasks = classicSession.sparkContext.broadcast(conf)
    DeltaFileOperations
      .recursiveListDirs(classicSession, Seq(location), tasks, _ == "_delta_log", _ => false, None)
      .where("NOT isDir")
      .select("path")
  }

  /** Whether the log is still there, which a drop removes. */
  def exists: Boolean = files.exists(table.deltaLog.logPath)

  /** Writes a small text file below the table; false when there is one that is not to be overwritten. */
  def writeText(file: String, text: String, overwrite: Boolean): Boolean = {
    checkThere()
    try {
      val out = files.create(below(file), overwrite)
      try out.write(text.getBytes(StandardCharsets.UTF_8))
      finally out.close()
      true
    } catch { case _: FileAlreadyExistsException if !overwrite => false }
  }

  /**
   * The text of a small file below the table, null when there is none.
   *
   * File systems report a folder of this name, and a file that may not be read, as not found too; here they are errors.
   */
  def readText(file: String): String =
    try TableLookup.textOf(files, below(file))
    catch { case _: FileNotFoundException if !files.exists(below(file)) => null }

  /**
   * Names of the files in a folder below the table that contain one of `parts`, as a JSON array; empty when there is no
   * such folder. Other names are dropped while the file system lists the folder, in batches where it can: a folder may
   * have a million files.
   */
  def listNames(folder: String, parts: ju.List[String]): String = {
    val names = new ObjectMapper().createArrayNode()
    val texts = parts.asScala.toArray
    try {
      val entries = files.listStatusIterator(below(folder))
      while (entries.hasNext) {
        val entry = entries.next()
        val name = entry.getPath.getName
        if (entry.isFile && texts.exists(name.contains(_))) names.add(name)
      }
    } catch { case _: FileNotFoundException => () }
    names.toString
  }

  def delete(file: String): Boolean = files.delete(below(file), false)

  /** Creates and deletes an empty file under the table; throws what the file system throws when it denies that. */
  def probeWrite(file: String): Unit = {
    checkThere()
    files.create(below(file), false).close()
    files.delete(below(file), false)
  }

  /** A table that was dropped meanwhile must not come back as a folder, which would block a new table of this place. */
  private def checkThere(): Unit =
    if (!exists) throw new FileNotFoundException(s"$root has no Delta log")

  private def below(file: String): Path = if (file.isEmpty) root else new Path(root, file)
  private def files: FileSystem = root.getFileSystem(table.deltaLog.newDeltaHadoopConf())
}

object TableLookup {
  private val Writing =
    ju.Set.of(TableWritePrivilege.INSERT, TableWritePrivilege.UPDATE, TableWritePrivilege.DELETE)

  // The largest files of USE that are read whole are merged events, of some 20 million characters.
  private val MostTextBytes: Int = 64 * 1024 * 1024

  /** The text of a small file; fails for a larger one than any file of USE, because others can write there. */
  private[usespark] def textOf(files: FileSystem, file: Path): String = {
    val in = files.open(file)
    try {
      val bytes = in.readNBytes(MostTextBytes + 1)
      if (bytes.length > MostTextBytes) throw new IOException(s"It has more than $MostTextBytes bytes")
      new String(bytes, StandardCharsets.UTF_8)
    } finally in.close()
  }

  /**
   * Looks a name, `` delta.`/path` `` or a bare path up as SQL in this session would.
   *
   * Delta's catalog asks the active session what a path is, and in a thread without one takes none for a table.
   */
  def find(session: SparkSession, name: String): FoundTable = ActiveSession.within(session)(lookup(session, name))

  private def lookup(session: SparkSession, name: String): FoundTable = {
    val classicSession = session.asInstanceOf[classic.SparkSession]
    try resolve(classicSession, partsOf(classicSession, name))
    catch { case error: ParseException => new FoundTable("invalid", name, error.getSimpleMessage, null) }
  }

  /**
   * Asks the catalog of a name for the right to insert, update and delete rows, and throws what the catalog throws when it
   * denies that. Catalogs that know no rights are not asked.
   */
  def checkRights(session: SparkSession, name: String): Unit = ActiveSession.within(session) {
    placeOf(session.asInstanceOf[classic.SparkSession], name) match {
      case (tables: TableCatalog, identifier) if Metastore.restricts(tables) => tables.loadTable(identifier, Writing)
      case _ => ()
    }
  }

  /**
   * Whether a user may know that there is a table of this name: whether its catalog loads it. Catalogs that know no rights
   * are not asked, and neither is any about a path.
   */
  def isShown(session: SparkSession, name: String): Boolean = ActiveSession.within(session) {
    val (owner, identifier) = placeOf(session.asInstanceOf[classic.SparkSession], name)
    val byPath = identifier.namespace().toSeq == Seq("delta") && new Path(identifier.name()).isAbsolute
    byPath || !Metastore.restricts(owner) || Metastore.isLoaded(session, owner, identifier)
  }

  private def partsOf(session: classic.SparkSession, name: String): Seq[String] =
    if (name.matches("([a-zA-Z][a-zA-Z0-9+.-]*:)?/.*")) Seq("delta", name)
    else session.sessionState.sqlParser.parseMultipartIdentifier(name)

  private def placeOf(session: classic.SparkSession, name: String): (CatalogPlugin, Identifier) = {
    val (owner, _, identifier) = placeOf(session, partsOf(session, name))
    (owner, identifier)
  }

  /** The catalog of a name, the parts without that of the catalog, and the name in the catalog. */
  private def placeOf(session: classic.SparkSession, parts: Seq[String]): (CatalogPlugin, Seq[String], Identifier) = {
    val catalogs = session.sessionState.catalogManager
    val (owner, rest) =
      if (isPath(parts)) (catalogs.catalog("spark_catalog"), parts)
      else if (parts.length > 1 && catalogs.isCatalogRegistered(parts.head)) (catalogs.catalog(parts.head), parts.tail)
      else (catalogs.currentCatalog, parts)
    val identifier =
      if (rest.length > 1) Identifier.of(rest.init.toArray, rest.last)
      else if (rest eq parts) Identifier.of(catalogs.currentNamespace, rest.last)
      else Identifier.of(owner.defaultNamespace(), rest.last)
    (owner, rest, identifier)
  }

  private def isPath(parts: Seq[String]): Boolean = parts.length == 2 && parts.head.equalsIgnoreCase("delta")

  private def resolve(session: classic.SparkSession, parts: Seq[String]): FoundTable = {
    val (owner, rest, identifier) = placeOf(session, parts)
    val byPath = isPath(parts)
    val isSession = owner eq session.sessionState.catalogManager.catalog("spark_catalog")
    val full = Identifiers.quoted(owner.name() +: identifier.namespace().toSeq :+ identifier.name())
    def ofKind(kind: String, detail: String = "", table: DeltaTableV2 = null) =
      new FoundTable(kind, if (table == null) full else Identifiers.of(owner.name(), table), detail, table)
    if (parts.exists(_.isEmpty)) ofKind("invalid", "a part of it is empty")
    else if (!byPath && isSession && session.sessionState.catalog.isTempView(parts)) ofKind("view")
    else
      owner match {
        case tables: TableCatalog =>
          try
            tables.loadTable(identifier) match {
              case delta: DeltaTableV2 =>
                TablePaths.reach(session, delta.path)
                TablePaths.meaning(session, delta) match {
                  case Some(("inside", _)) if !exists(session, delta.path) => ofKind("missing", "no such folder")
                  case Some((kind, root)) => ofKind(kind, TablePaths.shown(session, root))
                  case _ if isThere(delta) => ofKind("delta", table = delta)
                  case _ if delta.catalogTable.isEmpty && exists(session, delta.path) =>
                    ofKind("other", "no Delta log there")
                  case _ => ofKind("missing", "no such folder")
                }
              case _: TableFacade => ofKind("virtual", Identifiers.quoted(rest))
              case _: VirtualTable if UseCatalog.isSystem(identifier.namespace()) => ofKind("virtual")
              case _: VirtualTable => ofKind("virtual", Identifiers.quoted(rest.init))
              case _ if isSession && isView(session, identifier) => ofKind("view")
              case other: Table => ofKind("other", Option(other.properties().get("provider")).getOrElse("no provider"))
            }
          catch {
            case _: NoSuchTableException | _: NoSuchNamespaceException =>
              fileFormat(session, identifier).fold(ofKind("missing")) { format =>
                val path = new Path(identifier.name())
                TablePaths.reach(session, path)
                if (!exists(session, path)) ofKind("missing", "no such folder")
                else if (exists(session, new Path(path, "_delta_log"))) ofKind("files", TablePaths.shown(session, path))
                else ofKind("other", format)
              }
            case error: AnalysisException if !String.valueOf(error.getCondition).startsWith("DELTA_") =>
              ofKind("missing", error.getSimpleMessage)
          }
        case _ => ofKind("missing", "not a catalog of tables")
      }
  }

  /**
   * Whether there is a table. Delta caches the empty snapshot of a folder that was away for a moment, so the log of what
   * seems to be no table is listed once more. An error of that is the caller's: nobody knows then whether there is one.
   */
  private def isThere(table: DeltaTableV2): Boolean =
    table.tableExists || table.update().version >= 0

  private def exists(session: classic.SparkSession, path: Path): Boolean =
    path.getFileSystem(session.sessionState.newHadoopConf()).exists(path)

  /** The format of files that Spark reads as `` format.`/path` ``. */
  private def fileFormat(session: classic.SparkSession, identifier: Identifier): Option[String] =
    identifier.namespace() match {
      case Array(format) =>
        Try(DataSource.lookupDataSource(format, session.sessionState.conf)).toOption
          .filter(_ => Try(new Path(identifier.name()).isAbsolute).getOrElse(false))
          .map(_ => format)
      case _ => None
    }

  private def isView(session: classic.SparkSession, identifier: Identifier): Boolean =
    identifier.namespace().length == 1 && session.sessionState.catalog
      .getTableMetadata(TableIdentifier(identifier.name(), identifier.namespace().headOption))
      .tableType == CatalogTableType.VIEW
}
