package org.apache.spark.sql.usespark

import java.lang.reflect.Proxy
import java.security.PrivilegedAction
import java.util.Properties
import java.util.concurrent.{ExecutionException, Future, SynchronousQueue, ThreadPoolExecutor, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.security.UserGroupInformation
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic
import py4j.{Gateway, PythonClient}
import py4j.reflection.PythonProxyHandler

/**
 * The threads on which Python is asked.
 *
 * Each thread of the JVM that asks gets a thread of Python for itself, which stays when it ends. A server makes threads
 * for connections and statements without end, so those ask through threads of ours, which are reused and stay: as many as
 * have ever asked at once. There is no upper bound, since a question may lead to another one, on which it waits.
 * Threads that Python itself started ask directly.
 */
object CallbackThreads {
  private val number = new AtomicInteger()

  private val threads = new ThreadPoolExecutor(
    0,
    Int.MaxValue,
    Long.MaxValue,
    TimeUnit.NANOSECONDS,
    new SynchronousQueue[Runnable],
    (work: Runnable) => {
      val thread = new Thread(work, s"use-python-${number.incrementAndGet()}")
      thread.setDaemon(true)
      thread
    }
  )

  /** Does `work`, which asks `handler` for the session, where it belongs; an interrupt reaches it there. */
  def run(handler: AnyRef, session: SparkSession)(work: => AnyRef): AnyRef =
    if (startedByPython(handler)) work else elsewhere(session.asInstanceOf[classic.SparkSession], () => work)

  private def elsewhere(session: classic.SparkSession, work: () => AnyRef): AnyRef = {
    val context = session.sparkContext
    val properties = Option(context.getLocalProperties).fold(new Properties())(_.clone().asInstanceOf[Properties])
    val loader = Thread.currentThread().getContextClassLoader
    val user = UserGroupInformation.getCurrentUser
    @volatile var worker: Thread = null
    val answer = threads.submit { () =>
      Thread.interrupted() // one that came too late for the question before
      worker = Thread.currentThread()
      worker.setContextClassLoader(loader)
      context.setLocalProperties(properties)
      try user.doAs(asAction(() => session.withActive(work())))
      finally context.setLocalProperties(new Properties())
    }
    waitFor(answer, () => Option(worker).foreach(_.interrupt()))
  }

  /** Waits to the end even when interrupted: who asked to stop is answered once the work has come to a boundary. */
  private def waitFor(answer: Future[AnyRef], interrupt: () => Unit): AnyRef =
    try answer.get()
    catch {
      case _: InterruptedException =>
        interrupt()
        try waitFor(answer, interrupt)
        finally Thread.currentThread().interrupt()
      case error: ExecutionException => throw error.getCause
    }

  private def asAction(work: () => AnyRef): PrivilegedAction[AnyRef] = () => work()

  private def startedByPython(handler: AnyRef): Boolean =
    Proxy.isProxyClass(handler.getClass) && (Proxy.getInvocationHandler(handler) match {
      case proxy: PythonProxyHandler =>
        gatewayOf(proxy).getCallbackClient match {
          case client: PythonClient => client.getPerThreadConnection != null
          case _ => false
        }
      case _ => false
    })

  private val gatewayField = {
    val field = classOf[PythonProxyHandler].getDeclaredField("gateway")
    field.setAccessible(true)
    field
  }

  private def gatewayOf(proxy: PythonProxyHandler): Gateway = gatewayField.get(proxy).asInstanceOf[Gateway]
}
