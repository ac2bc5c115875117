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
 * The threads that call Python.
 *
 * A thread of the JVM that calls Python gets a thread of Python, which stays when the first one ends. A server starts
 * threads for connections and statements without limit. They call Python through threads of this pool, which are reused
 * and stay: as many as have ever called at once. There is no upper bound, since a call may wait for another call.
 * Threads that Python itself started call it directly.
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
   * Calls Python for the session on the right thread, and takes the result. An interrupt stops the call there; a result
   * that is returned nevertheless, such as the report of earlier work, is taken without interruption.
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
    // The local properties that Delta's planning reads from its thread.
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

  /** Whether the caller that waits for this thread was interrupted, even if an exception has reported it already. */
  def stopAsked: Boolean = Thread.currentThread() match {
    case ours: CallbackThread => ours.stopAsked
    case other => other.isInterrupted
  }

  /** Clears the interrupt of a thread of the pool; its caller is interrupted again when it has the result. */
  def forgetInterrupt(): Boolean = Thread.currentThread() match {
    case _: CallbackThread =>
      Thread.interrupted()
      true
    case _ => false
  }

  /** Waits to the end even when interrupted: a caller that stops gets the result once the work reaches a boundary. */
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

  /** Whether this thread serves a thread of Python, or belongs to the pool: both stay. */
  private def staysWithPython: Boolean =
    Thread.currentThread().isInstanceOf[CallbackThread] || StackWalker
      .getInstance()
      .walk(frames => frames.anyMatch(_.getClassName == connection))

  private val connection = classOf[ClientServerConnection].getName
}

/** The call of one caller. Stopping it interrupts its thread only while the thread works on this call. */
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

  /** Forgets the session of the thread that has made this one, which would be kept. */
  override def run(): Unit = {
    SparkSession.clearActiveSession()
    super.run()
  }

  /** Clears an interrupt that came too late for the call before. */
  def begin(): Unit = {
    stopAsked = false
    Thread.interrupted()
  }

  def stopWork(): Unit = {
    stopAsked = true
    interrupt()
  }
}
