package org.apache.spark.sql.delta.usespark

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.{CurrentTransactionInfo, IsolationLevel, OptimisticTransaction}

/** A transaction that compares itself with single commits. */
trait CommitChecks extends OptimisticTransaction {

  /** Throws Delta's error if the transaction conflicts with a commit. */
  protected def checkCommit(commit: FileStatus, info: CurrentTransactionInfo, level: IsolationLevel): Unit =
    checkForConflictsAgainstVersion(info, commit, level)
}
