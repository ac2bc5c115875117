package org.apache.spark.sql.usespark

import java.security.PrivilegedAction
import java.util.Properties
import java.util.concurrent.{Callable, ExecutionException, Future, SynchronousQueue, ThreadPoolExecutor, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.security.UserGroupInformation
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta.OptimisticTransaction
import py4j.ClientServerConnection

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
    (work: Runnable) => new CallbackThread(work, s"use-python-${number.incrementAndGet()}")
  )

  /**
   * Asks Python for the session, and takes its answer, where that belongs. An interrupt reaches the question there; an
   * answer that came all the same, such as the report of what was done before, is taken undisturbed.
   */
  def run[T](session: SparkSession)(ask: => AnyRef)(take: AnyRef => T): T =
    if (staysWithPython) take(ask)
    else
      elsewhere(
        session.asInstanceOf[classic.SparkSession],
        () => {
          val answer = ask
          Thread.interrupted()
          take(answer)
        }
      )

  private def elsewhere[T](session: classic.SparkSession, work: () => T): T = {
    val context = session.sparkContext
    val properties = Option(context.getLocalProperties).fold(new Properties())(_.clone().asInstanceOf[Properties])
    val loader = Thread.currentThread().getContextClassLoader
    val user = UserGroupInformation.getCurrentUser
    // What Delta's planning looks for in its thread.
    val transaction = OptimisticTransaction.getActive()
    val question = new Question(() => {
      Thread.currentThread().setContextClassLoader(loader)
      context.setLocalProperties(properties)
      try user.doAs(asAction(() => session.withActive(within(transaction, work))))
      finally context.setLocalProperties(new Properties())
    })
    waitFor(threads.submit(question), () => question.stop())
  }

  private def within[T](transaction: Option[OptimisticTransaction], work: () => T): T =
    transaction.fold(work())(OptimisticTransaction.withActive(_)(work()))

  /** Whether who waits for this thread was interrupted; an exception that tells of it has not made that forgotten. */
  def stopAsked: Boolean = Thread.currentThread() match {
    case ours: CallbackThread => ours.stopAsked
    case other => other.isInterrupted
  }

  /** Clears the interrupt of a thread of ours, whose caller is interrupted again when it has its answer. */
  def forgetInterrupt(): Boolean = Thread.currentThread() match {
    case _: CallbackThread =>
      Thread.interrupted()
      true
    case _ => false
  }

  /** Waits to the end even when interrupted: who asked to stop is answered once the work has come to a boundary. */
  private def waitFor[T](answer: Future[T], interrupt: () => Unit): T =
    try answer.get()
    catch {
      case _: InterruptedException =>
        interrupt()
        try waitFor(answer, interrupt)
        finally Thread.currentThread().interrupt()
      case error: ExecutionException => throw error.getCause
    }

  private def asAction[T](work: () => T): PrivilegedAction[T] = () => work()

  /** Whether this thread serves a thread of Python, or is one of ours: both are there to stay. */
  private def staysWithPython: Boolean =
    Thread.currentThread().isInstanceOf[CallbackThread] || StackWalker
      .getInstance()
      .walk(frames => frames.anyMatch(_.getClassName == connection))

  private val connection = classOf[ClientServerConnection].getName
}

/** What one caller asks. Stopping it reaches its thread while that works on it, and nobody who is served after it. */
final private class Question[T](work: () => T) extends Callable[T] {
  private var thread: Option[CallbackThread] = None
  private var stopped = false

  override def call(): T = {
    val own = Thread.currentThread().asInstanceOf[CallbackThread]
    synchronized {
      own.begin()
      thread = Some(own)
      if (stopped) own.stopWork()
    }
    try work()
    finally synchronized { thread = None }
  }

  def stop(): Unit = synchronized {
    stopped = true
    thread.foreach(_.stopWork())
  }
}

final private class CallbackThread(work: Runnable, name: String) extends Thread(work, name) {
  @volatile var stopAsked = false
  setDaemon(true)

  /** Forgets an interrupt that came too late for the question before. */
  def begin(): Unit = {
    stopAsked = false
    Thread.interrupted()
  }

  def stopWork(): Unit = {
    stopAsked = true
    interrupt()
  }
}
