package org.apache.spark.sql.delta.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.usespark.{IndexedRelation, IndexedTables}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.commands.{DeletionVectorUtils, MergeIntoCommand}

/**
 * What a statement does with the rows of a table.
 *
 * @param replacesRows whether its new rows replace others, and get the layout that these had
 * @param vectors the setting that lets it mark rows as deleted in tables with deletion vectors
 */
final case class StatementKind(replacesRows: Boolean, vectors: Option[String] = None)

/**
 * The transaction of a statement that changes rows. It says whether a conflict is only with rewrites of ours: then the
 * statement may run again.
 *
 * @param repeats how many times the statement ran before
 * @param merge the statement, if it is a MERGE
 */
final class StatementTransaction(
    log: DeltaLog,
    table: Option[CatalogTable],
    base: Snapshot,
    kind: StatementKind,
    repeats: Int,
    merge: Option[MergeIntoCommand] = None
) extends IndexedTransaction(log, table, base, ju.Map.of[String, String](), "append", needsLayout = false)
    with CommitChecks {
  private var filesWithKeys: Option[Int] = None
  private var keysError: Option[String] = None

  /** Whether it lost to rewrites of ours, and to nobody else. Nothing was committed then. */
  private[usespark] var lostToRewrites: Boolean = false

  override protected def replacesFiles: Boolean =
    !(kind.vectors.exists(spark.conf.get(_).toBoolean) && DeletionVectorUtils.deletionVectorsWritable(snapshot))

  /** The files that the rows of a MERGE can match, among those that its conditions on the target leave. */
  override def filterFiles(filters: Seq[Expression], keepNumRecords: Boolean): Seq[AddFile] = {
    val read = merge.map(MergeKeys.conditionsOf(_, snapshot))
    keysError = read.flatMap(_.left.toOption)
    val keys = read.flatMap(_.toOption).getOrElse(Nil)
    val files = super.filterFiles(filters ++ keys, keepNumRecords)
    if (keys.nonEmpty) filesWithKeys = Some(files.size)
    files
  }

  override protected def laysOutNewRows: Boolean =
    kind.replacesRows && IndexedRelation.isIndexed(base.metadata.configuration) &&
      IndexedRelation.hasIndex(metadata.configuration)

  override protected def modeOf(options: DeltaOptions): String = {
    val isDynamic = options.isDynamicPartitionOverwriteMode && metadata.partitionColumns.nonEmpty
    if (isDynamic || options.replaceWhere.isDefined || IndexedTables.replacesMatches(options)) "partial" else "replace"
  }

  override protected def checkForConflicts(
      checkVersion: Long,
      info: CurrentTransactionInfo,
      attemptNumber: Int,
      level: IsolationLevel
  ): (Long, CurrentTransactionInfo) =
    try super.checkForConflicts(checkVersion, info, attemptNumber, level)
    catch {
      case conflict: DeltaConcurrentModificationException =>
        lostToRewrites = losesToRewritesOnly(info, level)
        throw conflict
    }

  /**
   * Whether the transaction has no conflict with a commit of anybody else; throws Delta's error where it has one.
   *
   * The statement has not been committed then: a commit whose answer was lost is among the winners.
   */
  private def losesToRewritesOnly(info: CurrentTransactionInfo, level: IsolationLevel): Boolean = {
    val commits = winners.map { status =>
      status -> log.store.read(status, log.newDeltaHadoopConf()).map(Action.fromJson)
    }
    val (rewrites, others) = commits.partition { case (_, actions) => StatementTransaction.isRewrite(actions) }
    if (rewrites.isEmpty || versionDespiteConflict.isDefined) false
    else {
      others.foreach { case (status, _) => checkCommit(status, info, level) }
      true
    }
  }

  /**
   * The commit says that a session with USE made it, how often the statement was repeated, which files are plain, how
   * many files of the target could have keys of the source, and the code of the error if these keys could not be read.
   */
  override protected def commitImpl(
      actions: Seq[Action],
      op: DeltaOperations.Operation,
      canSkipEmptyCommits: Boolean,
      tags: Map[String, String]
  ): Option[Long] = {
    val mapper = new ObjectMapper()
    val json = mapper.createObjectNode().put("repeats", repeats)
    json.set[JsonNode]("plain_files", mapper.valueToTree(plainFiles.asJava))
    filesWithKeys.foreach(json.put("files_with_keys", _))
    keysError.foreach(json.put("keys_error", _))
    super.commitImpl(actions, op, canSkipEmptyCommits, tags + (StatementTransaction.Tag -> json.toString))
  }
}

object StatementTransaction {
  private val Tag = "use.statement"

  /** Whether a commit is a rewrite of ours that changes no data. */
  private def isRewrite(actions: Seq[Action]): Boolean =
    actions.exists { case commit: CommitInfo => commit.operation.startsWith("USE "); case _ => false } &&
      actions.forall {
        case file: AddFile => !file.dataChange
        case file: RemoveFile => !file.dataChange
        case _: CommitInfo => true
        // The number of the last row; rows keep their numbers.
        case RowId.RowTrackingMetadataDomain(_) => true
        case _ => false
      }
}

/** Gives the transaction of one run of a statement to Delta. */
final class StatementObserver(kind: StatementKind, repeats: Int, merge: Option[MergeIntoCommand] = None)
    extends TransactionExecutionObserver {
  private var isCommitted = false
  private var last: Option[StatementTransaction] = None

  /** The newest transaction if it lost to rewrites of ours, and to nobody else. */
  def lostToRewrites: Option[StatementTransaction] = last.filter(_.lostToRewrites)

  /** Hooks after the commit, such as auto compaction, have transactions of their own. */
  override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = {
    val delta = f
    if (isCommitted || delta.getClass != classOf[OptimisticTransaction]) delta
    else {
      last = Some(new StatementTransaction(delta.deltaLog, delta.catalogTable, delta.snapshot, kind, repeats, merge))
      last.get
    }
  }

  override def createChild(): TransactionExecutionObserver = this
  override def preparingCommit[T](f: => T): T = f
  override def beginDoCommit(): Unit = ()
  override def beginBackfill(): Unit = ()
  override def beginPostCommit(): Unit = isCommitted = true
  override def transactionCommitted(): Unit = isCommitted = true
  override def transactionAborted(): Unit = ()
}
