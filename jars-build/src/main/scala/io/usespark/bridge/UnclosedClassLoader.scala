package io.usespark

import java.net.{URL, URLClassLoader}
import java.util.{Collections, Enumeration}

import org.apache.spark.sql.SparkSession

/**
 * Wraps the class loader of `spark.jars`, so that it is never closed.
 *
 * When a JDBC client leaves, Hive closes the class loaders of its session up to Spark's own. The one of `spark.jars`
 * lies between, and after the first client had left no further class of ours or of Delta's could be loaded.
 */
final class UnclosedClassLoader(jars: ClassLoader) extends ClassLoader(classOf[SparkSession].getClassLoader) {
  override protected def findClass(name: String): Class[_] = jars.loadClass(name)

  override protected def findResource(name: String): URL = jars match {
    case urls: URLClassLoader => urls.findResource(name)
    case other => other.getResource(name)
  }

  override protected def findResources(name: String): Enumeration[URL] = jars match {
    case urls: URLClassLoader => urls.findResources(name)
    case other if other eq getParent => Collections.emptyEnumeration()
    case other => other.getResources(name)
  }
}

object UnclosedClassLoader {

  private val ours = getClass.getClassLoader

  /** Puts one into this thread, from which Spark takes the class loader of all sessions that it makes later. */
  def install(): Unit = {
    val thread = Thread.currentThread()
    val current = thread.getContextClassLoader
    val known = Iterator.iterate(current)(_.getParent).takeWhile(_ != null).toSeq
    val shielded = known.exists(_.isInstanceOf[UnclosedClassLoader])
    if (!shielded && (ours ne classOf[SparkSession].getClassLoader)) {
      // Hive gives the threads of its sessions loaders that do not know `spark.jars` at all.
      thread.setContextClassLoader(new UnclosedClassLoader(if (known.contains(ours)) current else ours))
    }
  }
}
