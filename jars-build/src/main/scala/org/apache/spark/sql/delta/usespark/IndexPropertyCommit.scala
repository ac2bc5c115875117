package org.apache.spark.sql.delta.usespark

import java.util.Locale

import org.apache.spark.sql.delta.{DeltaOperations, OptimisticTransaction}
import org.apache.spark.sql.delta.actions.{Action, Metadata}
import org.apache.spark.sql.delta.sources.DeltaSourceUtils

/**
 * A transaction whose commit fails no concurrent writer when all that it changes in the metadata is that properties of
 * the index are set.
 *
 * A commit with metadata fails every transaction that began before it, unless it carries the tag of a commit that only
 * raises the high-water marks of identity columns. A transaction without metadata of its own then commits after it. What
 * the tag promises holds for the index as well: no writer depends on the new values, and none writes the old ones back.
 *
 * A property that is removed gets no tag, since files that are tagged concurrently could depend on it. Revisions that no
 * file belongs to are an exception: files that join one concurrently count as unindexed until they are indexed again. A
 * revision that changes gets none either: such files would be read by its new space. Revision 0 has no space.
 */
trait IndexPropertyCommit extends OptimisticTransaction {

  override protected def commitImpl(
      actions: Seq[Action],
      op: DeltaOperations.Operation,
      canSkipEmptyCommits: Boolean,
      tags: Map[String, String]
  ): Option[Long] = {
    val added =
      if (readVersion >= 0 && IndexPropertyCommit.setsOnlyIndexProperties(snapshot.metadata, metadata))
        Map(DeltaSourceUtils.IDENTITY_COMMITINFO_TAG -> "true")
      else Map.empty[String, String]
    super.commitImpl(actions, op, canSkipEmptyCommits, tags ++ added)
  }
}

object IndexPropertyCommit {
  private val namespaces = Seq("use.", "qbeast.")
  private val ofRevision = raw"(use|qbeast)\..*\.[0-9]+".r

  private def setsOnlyIndexProperties(before: Metadata, after: Metadata): Boolean = {
    val (old, now) = (before.configuration, after.configuration)
    val changed = now.filterNot { case (key, value) => old.get(key).contains(value) }.keys
    val removed = old.keySet -- now.keySet
    def isOfRevision(key: String) = ofRevision.matches(key.toLowerCase(Locale.ROOT))
    before.copy(configuration = now) == after && (changed.nonEmpty || removed.nonEmpty) &&
    removed.forall(isOfRevision) &&
    changed.forall(key => namespaces.exists(key.toLowerCase(Locale.ROOT).startsWith)) &&
    !changed.exists(key => old.contains(key) && isOfRevision(key) && !key.endsWith(".0"))
  }
}
