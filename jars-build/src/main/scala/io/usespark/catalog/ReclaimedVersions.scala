package io.usespark

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.delta.DeltaErrors.TimestampEarlierThanCommitRetentionException
import org.apache.spark.sql.delta.VersionNotFoundException
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.CloneSource

/** Time travel to versions that were reclaimed: Python refuses it, also if the log still has the version. */
private object ReclaimedVersions {

  /**
   * A version of a table, unless it was reclaimed.
   *
   * @param catalog the name of the catalog of the table
   * @param version the version that the statement names, if it names one
   * @param newest the newest version of the table
   * @param table the version of the table, whose log may lack it
   */
  def refused(catalog: String, version: Option[Long], newest: => Table)(table: => Table): Table =
    if (!Python.attached) table
    else
      try {
        val loaded = table
        loaded match {
          case delta: DeltaTableV2 if delta.tableExists => ask(catalog, delta, delta.initialSnapshot.version)
          case _ => ()
        }
        loaded
      } catch {
        case error @ (_: VersionNotFoundException | _: TimestampEarlierThanCommitRetentionException) =>
          newest match {
            // A time before the log begins is before every version that it has.
            case delta: DeltaTableV2 => ask(catalog, delta, version.getOrElse(-1L))
            case _ => ()
          }
          throw error
      }

  /** Refuses a clone of a version that was reclaimed: the clone would name files that are gone. */
  def checkClone(source: CloneSource): Unit =
    for (snapshot <- source.snapshot if Python.attached && source.timeTravelOpt.nonEmpty) {
      val catalog = source.catalogTable.flatMap(_.identifier.catalog).getOrElse("spark_catalog")
      ask(Identifiers.of(catalog, source.catalogTable, source.dataPath), snapshot.version)
    }

  private def ask(catalog: String, table: DeltaTableV2, version: Long): Unit =
    ask(Identifiers.of(catalog, table), version)

  /** By the name that the statement has used: its user may have no access by path. */
  private def ask(table: String, version: Long): Unit =
    Python.text(Operation.CHECK_VERSION, Map("table" -> table, "version" -> version))
}
