package org.apache.spark.sql.hive.thriftserver.usespark

import org.apache.hadoop.hive.common.ServerUtils
import org.apache.hadoop.hive.conf.HiveConf
import org.apache.hive.service.server.HiveServer2
import org.apache.spark.internal.config.UI.UI_ENABLED
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.hive.HiveUtils
import org.apache.spark.sql.hive.thriftserver.{HiveThriftServer2, ReflectedCompositeService, SparkSQLCLIService}
import org.apache.spark.sql.hive.thriftserver.ui.{HiveThriftServer2AppStatusStore, HiveThriftServer2EventManager}
import org.apache.spark.sql.hive.thriftserver.ui.{HiveThriftServer2Listener, ThriftServerTab}
import org.apache.spark.status.ElementTrackingStore

/** Spark's Thrift server with `JdbcService` in place of the service that clients talk to. */
final class JdbcServer private (session: SparkSession) extends HiveServer2 with ReflectedCompositeService {

  override def init(conf: HiveConf): Unit = {
    val statements = new SparkSQLCLIService(this, session)
    addService(statements)
    addService(new JdbcService(statements))
    initCompositeService(conf)
  }
}

object JdbcServer {

  /** Starts a server for the session, as Spark's own `startWithSparkSession` does. */
  def serve(session: SparkSession): JdbcServer = {
    val context = session.sparkContext
    HiveThriftServer2.systemExitOnError.set(false)
    val hive = HiveUtils.newClientForExecution(context.conf, session.sessionState.newHadoopConf())
    ServerUtils.cleanUpScratchDir(hive.conf)
    val server = new JdbcServer(session)
    server.init(hive.conf)
    val store = context.statusStore.store.asInstanceOf[ElementTrackingStore]
    // Before the first client connects.
    HiveThriftServer2.eventManager = new HiveThriftServer2EventManager(context)
    HiveThriftServer2.listener = new HiveThriftServer2Listener(store, context.conf, None)
    context.listenerBus.addToStatusQueue(HiveThriftServer2.listener)
    server.start()
    HiveThriftServer2.uiTab = Option.when(context.conf.get(UI_ENABLED)) {
      new ThriftServerTab(new HiveThriftServer2AppStatusStore(store), ThriftServerTab.getSparkUI(context))
    }
    server
  }
}
