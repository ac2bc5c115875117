package io.usespark

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.security.AccessControlException
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.delta.DeltaTableUtils
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** Delta reads paths that are not the root of a table; USE must write nothing at such a path. */
object TablePaths {
  // Hadoop retries for many minutes by default.
  private val Impatient = Map(
    "ipc.client.connect.timeout" -> "5000",
    "ipc.client.connect.max.retries" -> "1",
    "ipc.client.connect.max.retries.on.timeouts" -> "1",
    "ipc.client.rpc-timeout.ms" -> "10000",
    "dfs.client.failover.max.attempts" -> "4",
    "dfs.webhdfs.socket.connect-timeout" -> "5s",
    "dfs.webhdfs.socket.read-timeout" -> "10s",
    "dfs.http.client.retry.policy.enabled" -> "false",
    "dfs.http.client.failover.max.attempts" -> "2"
  )
  private val Retrying = Set("hdfs", "webhdfs", "swebhdfs")
  // Hadoop reports any such path as existing.
  private val WithoutFolders = Set("http", "https")
  private val answered = ConcurrentHashMap.newKeySet[String]()

  /**
   * What a path is that is not the root of a table, and the root: `version` for `/t@v3` or `/t@20260131120000000`, where
   * no such folder exists, or `inside` for a path below, such as the folder of a partition. A table of the metastore is at
   * its location, whatever its name is.
   */
  def meaning(session: SparkSession, table: DeltaTableV2): Option[(String, Path)] =
    if (table.catalogTable.nonEmpty) None
    else {
      val (plain, travel) =
        DeltaTableUtils.extractIfPathContainsTimeTravel(session, table.path.toString, table.options)
      val path = new Path(plain)
      val root = DeltaTableUtils.findDeltaTableRoot(session, path, table.options)
      if (travel.nonEmpty) root.map("version" -> _) else root.filter(_ != path).map("inside" -> _)
    }

  /**
   * A table, if there is one. Python refuses a path that is not the root of a table, and one that cannot be looked at.
   *
   * @param name the table as SQL reads it
   */
  def checked(name: => String)(load: => Table): Option[Table] =
    try {
      val table = load
      table match {
        case delta: DeltaTableV2 if !isReadable(SparkSession.active, delta) =>
          Python.text(Operation.CHECK_TABLE, Map("table" -> name))
        case _ => ()
      }
      Some(table)
    } catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }

  private def isReadable(session: SparkSession, table: DeltaTableV2): Boolean =
    try {
      reach(session, table.path)
      // Delta reads the log for its version, which shows whether that is possible.
      meaning(session, table).isEmpty && table.initialSnapshot.version >= -1
    } catch { case NonFatal(_) => false }

  /**
   * Fails soon where a file system does not answer.
   *
   * Only the first look of this JVM at a server of HDFS is made with few retries: Hadoop keeps the client, with its
   * settings, for all later ones.
   */
  def reach(session: SparkSession, path: Path): Unit = {
    val uri = path.toUri
    if (uri.getScheme != null && WithoutFolders(uri.getScheme.toLowerCase(Locale.ROOT)))
      throw new UnsupportedOperationException()
    val server = s"${uri.getScheme}://${uri.getAuthority}"
    if (uri.getScheme != null && Retrying(uri.getScheme.toLowerCase(Locale.ROOT)) && !answered.contains(server)) {
      val conf = new Configuration(session.sessionState.newHadoopConf())
      Impatient.foreach { case (key, value) => conf.set(key, value) }
      val files = FileSystem.newInstance(uri, conf)
      try files.exists(path)
      catch { case _: AccessControlException => () }
      finally files.close()
      answered.add(server)
    }
  }

  /** The path as people write it: without the scheme and authority of the default file system. */
  def shown(session: SparkSession, path: Path): String = {
    val home = FileSystem.getDefaultUri(session.sessionState.newHadoopConf())
    val uri = path.toUri
    val isHome = uri.getScheme == home.getScheme && Option(uri.getAuthority) == Option(home.getAuthority)
    if (isHome) Path.getPathWithoutSchemeAndAuthority(path).toString else path.toString
  }
}
