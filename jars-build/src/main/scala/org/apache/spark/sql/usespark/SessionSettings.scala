package org.apache.spark.sql.usespark

import java.util.concurrent.ConcurrentHashMap

import io.usespark.{IndexedRelation, Operation, Python, SettingDeclaration}
import org.apache.spark.TaskContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/** Makes Spark know the confs of USE, so that setting one to a value that Python does not accept is an error. */
object SessionSettings {
  private val names = ConcurrentHashMap.newKeySet[String]()

  // Spark sets all confs again in each copy of a session.
  private val accepted = ConcurrentHashMap.newKeySet[(String, String)]()

  def register(settings: Seq[SettingDeclaration]): Unit = synchronized {
    settings.foreach(setting => names.add(setting.name))
    settings
      .filterNot(setting => SQLConf.get.isModifiable(setting.name))
      .foreach { setting =>
        SQLConf
          .buildConf(setting.name)
          .doc(setting.doc)
          .stringConf
          .transform { value => check(setting, value); value }
          .createWithDefaultString(setting.default)
      }
  }

  /** The confs of USE that are set, as JSON: a request that has them need not read them one by one. */
  def json(session: SparkSession): String =
    IndexedRelation.json(session.conf.getAll.filter { case (name, _) => names.contains(name) })

  // A task sets the confs of its query again, which were checked before. It has no session that could ask.
  private def check(setting: SettingDeclaration, value: String): Unit =
    if (
      value != setting.default && TaskContext.get() == null && Python.attached &&
      !accepted.contains((setting.name, value))
    ) {
      Python.text(Operation.CHECK_SETTING, Map("name" -> setting.name, "value" -> value))
      accepted.add((setting.name, value))
    }
}
