package org.apache.spark.sql.delta.usespark

import java.util.concurrent.atomic.AtomicInteger
import java.{util => ju}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import io.usespark.TableState
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.mapreduce.TaskAttemptContext
import org.apache.spark.sql.{Column, DataFrame, Dataset}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.files.DelayedCommitProtocol
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.types.MetadataBuilder

/** A transaction that notes which files it has written, with their blocks, and deletes them when it is not committed. */
trait WritingTransaction extends SameTableTransaction with BlockTracking with IndexPropertyCommit {
  private var written: Seq[FileAction] = Nil
  private var comparisons: Seq[Seq[FileStatus]] = Nil

  /** The commits with which the transaction was compared last. */
  protected def winners: Seq[FileStatus] = comparisons.lastOption.getOrElse(Nil)

  override protected def getConflictingVersions(previousAttemptVersion: Long): Seq[FileStatus] = {
    comparisons :+= super.getConflictingVersions(previousAttemptVersion)
    winners
  }

  /**
   * The version that this transaction has committed although its commit ended with a conflict: a store's client sends a
   * commit again when it gets no answer, and the second attempt conflicts with the first one.
   */
  def versionDespiteConflict: Option[Long] =
    comparisons.flatten
      .find { status =>
        deltaLog.store.read(status, deltaLog.newDeltaHadoopConf()).map(Action.fromJson).exists {
          case commit: CommitInfo => commit.txnId.contains(txnId)
          case _ => false
        }
      }
      .map(FileNames.deltaVersion)

  /** The text that the names of the files contain, so that a vacuum recognizes them. */
  var mark: Option[String] = None

  override protected def getCommitter(outputPath: Path): DelayedCommitProtocol = {
    val isMapped = metadata.columnMappingMode != NoMapping
    val isRandom = isMapped || DeltaConfigs.RANDOMIZE_FILE_PREFIXES.fromMetaData(metadata)
    val prefix = Option.when(isRandom)(DeltaConfigs.RANDOM_PREFIX_LENGTH.fromMetaData(metadata))
    val stored =
      if (isMapped) metadata.schema.map(field => field.name -> DeltaColumnMapping.getPhysicalName(field)).toMap
      else Map.empty[String, String]
    new WrittenFiles(outputPath.toString, prefix, mark, stored)
  }

  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] = {
    val files = super.writeFiles(data, options, isOptimize, constraints)
    written ++= files
    files
  }

  /** How many files were written so far. */
  protected def writtenCount: Int = written.size

  /**
   * Deletes what was written, when it is certain that no commit names it; returns how many files are left.
   *
   * @param kept how many of the files stay, the first ones
   */
  def deleteWritten(failed: (FileAction, Throwable) => Unit, kept: Int = 0): Int = {
    val root = deltaLog.dataPath
    val files = root.getFileSystem(deltaLog.newDeltaHadoopConf())
    val left = written.drop(kept).count { file =>
      try !files.delete(new Path(root, new Path(new java.net.URI(file.path))), false)
      catch {
        case NonFatal(error) =>
          failed(file, error)
          true
      }
    }
    written = written.take(kept)
    left
  }
}

/** A transaction that replaces files by files with the same rows, or some of them. */
final class RewriteTransaction(log: DeltaLog, table: Option[CatalogTable], base: Snapshot)
    extends OptimisticTransaction(log, table, base)
    with WritingTransaction {

  /**
   * Called with the version of the next attempt, after the first check for conflicts. It returns when the commit may go
   * on, with the version of the attempt by then. If that is a later one, the commits between are checked, and it is called
   * again, since the check may have taken too long.
   */
  var hold: Option[ju.function.LongUnaryOperator] = None

  override protected def checkForConflicts(
      checkVersion: Long,
      info: CurrentTransactionInfo,
      attemptNumber: Int,
      level: IsolationLevel
  ): (Long, CurrentTransactionInfo) = {
    val (next, known) = super.checkForConflicts(checkVersion, info, attemptNumber, level)
    val held = hold
    hold = None
    held.fold((next, known)) { wait =>
      var checked = (next, known)
      while (wait.applyAsLong(checked._1) > checked._1)
        checked = super.checkForConflicts(checked._1, checked._2, attemptNumber, level)
      checkTable()
      checked
    }
  }

  /**
   * Rows that are left out have later rows in files that the commit depends on, and whatever others append changes
   * nothing of that. Under `Serializable`, Delta takes each non-blind commit of a table without partitions for one that
   * has read all files, so that every append would conflict.
   */
  override protected def getIsolationLevelToUse(
      actions: Seq[Action],
      operation: DeltaOperations.Operation
  ): IsolationLevel =
    super.getIsolationLevelToUse(actions, operation) match {
      case Serializable => WriteSerializable
      case level => level
    }

  /**
   * Delta counts every file that a commit adds, unless it knows the operation as one that gives live files other metadata.
   */
  override protected def incrementallyDeriveChecksum(
      attemptVersion: Long,
      currentTransactionInfo: CurrentTransactionInfo
  ): Option[VersionChecksum] = {
    val inPlace = currentTransactionInfo.op.isInPlaceFileMetadataUpdate.contains(true)
    val known =
      if (inPlace) currentTransactionInfo.copy(op = DeltaOperations.ComputeStats(Nil)) else currentTransactionInfo
    super.incrementallyDeriveChecksum(attemptVersion, known)
  }
}

/**
 * The files of a write, with pages by column.
 *
 * @param mark names them after the write, the task, its attempt, and a number, since a task may write several files of a
 *   partition
 * @param storedNames the names that columns have in files, where they differ
 */
final private class WrittenFiles(
    path: String,
    randomPrefixLength: Option[Int],
    mark: Option[String],
    storedNames: Map[String, String]
) extends DelayedCommitProtocol("delta", path, randomPrefixLength, None) {

  private val count = new AtomicInteger

  override def setupTask(context: TaskAttemptContext): Unit = {
    super.setupTask(context)
    ColumnPages.configure(context.getConfiguration, name => storedNames.getOrElse(name, name))
  }

  override def getFileName(context: TaskAttemptContext, ext: String, values: Map[String, String]): String = {
    val name = super.getFileName(context, ext, values)
    mark.fold(name) { text =>
      val kind = name.takeWhile(_ != '-')
      val attempt = context.getTaskAttemptID
      f"$kind-${attempt.getTaskID.getId}%05d-$text-use${attempt.getId}-${count.getAndIncrement()}$ext"
    }
  }
}

/**
 * Files that a transaction writes, step by step as Python requests: the common part of rewrites and indexed writes.
 *
 * @param options write options, passed on to Delta
 * @param constraints to be checked on the rows
 */
abstract class FileWriter(
    protected val transaction: WritingTransaction,
    options: Option[DeltaOptions],
    constraints: Seq[Constraint]
) {
  private var adds: Seq[AddFile] = Nil
  private var others: Seq[FileAction] = Nil

  /** The table that the files join. */
  def state: TableState

  /** Runs one step that Python requests. */
  protected def step[T](body: => T): T = body

  /** Sets the table's properties within the commit. */
  protected def setConfiguration(configuration: Map[String, String]): Unit

  /** Changes the table's properties within the commit. */
  def configure(entries: ju.Map[String, String], removed: ju.List[String]): Unit = step {
    setConfiguration(transaction.metadata.configuration -- removed.asScala ++ entries.asScala)
  }

  /**
   * Writes the rows, one file per partition (and table partition); JSON of path, size, rows, statistics and blocks per
   * file. `cube` and `weight`, or null, place a row as it is stored.
   */
  def write(rows: DataFrame, cube: Column, weight: Column): String = step {
    val written = transaction.tracking(cube, weight)(transaction.writeFiles(rows, options, true, constraints))
    adds = written.collect { case add: AddFile => add }
    others = written.filterNot(_.isInstanceOf[AddFile])
    val json = new ObjectMapper().createArrayNode()
    adds.foreach { file =>
      val entry = json.addObject().put("path", file.path).put("size", file.size).put("stats", file.stats)
      entry.put("rows", file.numLogicalRecords.getOrElse(-1L))
      transaction.putBlocks(file, entry)
    }
    json.toString
  }

  /** The rows as they were written, of the table as the commit under way will make it; no CHAR is padded. */
  def readWritten(): DataFrame = step {
    val (log, version) = (transaction.deltaLog, transaction.readVersion)
    val schema = SchemaMergingUtils.transformColumns(transaction.metadata.schema) { (_, field, _) =>
      val metadata = new MetadataBuilder().withMetadata(field.metadata)
      field.copy(metadata = metadata.remove(CharVarcharUtils.CHAR_VARCHAR_TYPE_STRING_METADATA_KEY).build())
    }
    val asStored = transaction.metadata.copy(schemaString = schema.json)
    log.createDataFrame(new ScannedTable(log, version, asStored, transaction.protocol), adds)
  }

  /** Adds tags to the files written, by path. */
  protected def setTags(tagsByPath: ju.Map[String, ju.Map[String, String]]): Unit =
    adds = adds.map { file =>
      Option(tagsByPath.get(file.path)).fold(file)(tags => file.copy(tags = file.tagsOrEmpty ++ tags.asScala))
    }

  /** The data files written, with their tags. */
  protected def addedFiles: Seq[AddFile] = adds

  /** Everything written: data files, and files of a change feed. */
  private[usespark] def files: Seq[FileAction] = adds ++ others
}
