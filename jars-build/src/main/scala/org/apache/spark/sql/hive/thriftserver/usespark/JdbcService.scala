package org.apache.spark.sql.hive.thriftserver.usespark

import org.apache.hadoop.hive.conf.HiveConf
import org.apache.hive.service.cli.CLIService
import org.apache.hive.service.cli.thrift.ThriftBinaryCLIService
import org.apache.hive.service.rpc.thrift._

/**
 * The service for JDBC clients: Spark's, with two differences.
 *
 * Every connection has a thread of its own. Hive leaves in a thread the class loader of the session that it served, which
 * does not have `spark.jars`; the next connection on that thread could load neither its authentication nor a catalog.
 *
 * Errors are their message. Hive sends the stack of the JVM with them, which most clients show in full.
 */
final class JdbcService(statements: CLIService) extends ThriftBinaryCLIService(statements) {

  override def init(conf: HiveConf): Unit = {
    super.init(conf)
    minWorkerThreads = 0
    workerKeepAliveTime = 0
  }

  override def OpenSession(request: TOpenSessionReq): TOpenSessionResp =
    withoutStack(super.OpenSession(request))(_.getStatus)

  override def ExecuteStatement(request: TExecuteStatementReq): TExecuteStatementResp =
    withoutStack(super.ExecuteStatement(request))(_.getStatus)

  override def FetchResults(request: TFetchResultsReq): TFetchResultsResp =
    withoutStack(super.FetchResults(request))(_.getStatus)

  override def GetOperationStatus(request: TGetOperationStatusReq): TGetOperationStatusResp = {
    val response = withoutStack(super.GetOperationStatus(request))(_.getStatus)
    if (response.isSetErrorMessage) response.setErrorMessage(JdbcService.messageIn(response.getErrorMessage))
    response
  }

  private def withoutStack[R](response: R)(status: R => TStatus): R = {
    Option(status(response)).foreach(_.unsetInfoMessages())
    response
  }
}

object JdbcService {
  private val Exception = "^(?:[a-z][\\w$]*\\.)+[A-Z][\\w$]*(?:Exception|Error): ".r

  /** The message in a printed stack: without the name of the exception before it and the frames below it. */
  def messageIn(stack: String): String = {
    val end = stack.indexOf("\n\tat ")
    Exception.replaceFirstIn(if (end < 0) stack else stack.substring(0, end), "")
  }
}
