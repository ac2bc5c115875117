package io.usespark

import java.io.FileNotFoundException
import java.nio.file.FileAlreadyExistsException
import java.{util => ju}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.delta.storage.LogStore

/**
 * Small texts in a folder that several applications share. Each is created once: Delta's own store of commits sees to
 * that on every file system, as it does for the versions of a table.
 */
final class SharedTexts(session: SparkSession, folder: String) {
  private val root = new Path(folder)
  private def conf = session.asInstanceOf[classic.SparkSession].sessionState.newHadoopConf()
  private def files = root.getFileSystem(conf)

  /** Writes a text; false where there is one of this name. */
  def create(name: String, text: String): Boolean =
    try {
      files.mkdirs(root)
      LogStore(session).write(new Path(root, name), Iterator(text), overwrite = false, conf)
      true
    } catch { case _: FileAlreadyExistsException => false }

  /** The text of a name; null where there is none. */
  def read(name: String): String =
    try TableLookup.textOf(files, new Path(root, name))
    catch { case _: FileNotFoundException => null }

  /** The names, as a JSON array. */
  def names(): String = {
    val names = new ObjectMapper().createArrayNode()
    try files.listStatus(root).filter(_.isFile).foreach(file => names.add(file.getPath.getName))
    catch { case _: FileNotFoundException => () }
    names.toString
  }

  def delete(names: ju.List[String]): Unit = names.asScala.foreach(name => files.delete(new Path(root, name), false))
}

object SharedTexts {

  /** The folder of a name below the location of the database `default`, which all users of a metastore share. */
  def ofMetastore(session: SparkSession, name: String): String = {
    val catalog = session.asInstanceOf[classic.SparkSession].sessionState.catalog.externalCatalog
    new Path(new Path(catalog.getDatabase("default").locationUri), name).toString
  }
}
