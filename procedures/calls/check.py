"""``CALL use.check``: verifies the index against the format, the file listing and, with ``deep``, the rows."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.jvm.session import described_jobs, work_session
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.insight.checking import metadata, rows
from procedures.insight.checking.problem import ERROR, UNTAGGING_HELPS, WARNING, CheckRow
from procedures.rewrite.untag import Untagging, tagged, untag

MAX_PROBLEMS_SHOWN = 1000
SUMMARY = "SUMMARY"


def check(call: Call, table: TableName, *, deep: bool = False, repair: bool = False) -> list[CheckRow]:
    """Verifies the index: tags, cubes, weights, counts and files from the log, and with deep every row.

    Args:
        deep: Reads the indexed columns of every indexed file and places each row.
        repair: Removes the index tags of files with errors, in one commit, so that use.optimize indexes them again.

    Returns:
        A row per problem, at most 1,000, and a summary.

    Raises:
        UseError: a concurrent commit conflicts with the repair, or the table does not exist.
    """
    found = ManagedTable.find(call.spark, table)
    if repair:
        found.check_rights()
    session = work_session(call.spark)
    snapshot = TableSnapshot.of(found.state(session))
    with described_jobs(session, f"USE check: {found.name}"):
        problems = _problems(found, snapshot, deep)
        repaired: set[str] = set()
        version = None
        shown = problems.orderBy("severity", "check", "path", "cube_id").limit(MAX_PROBLEMS_SHOWN).collect()
        totals = {(r.check, r.severity): r["count"] for r in problems.groupBy("check", "severity").count().collect()}
        if repair:
            failing = problems.where(F.col("check").isin(*UNTAGGING_HELPS)).select("path").distinct()
            commit = untag(
                found,
                lambda now: Untagging(tagged(now.log_files).join(failing, "path", "left_semi").select(*_columns(now))),
                "USE CHECK",
                "USE check: repairing",
            )
            if commit is not None:
                version = commit.version
                repaired = set(UNTAGGING_HELPS)
        rows_shown = [
            CheckRow(
                r.check,
                r.severity,
                r.path,
                r.revision_id,
                r.cube_id,
                r.message + (_REPAIRED if r.check in repaired else ""),
            )
            for r in shown
        ]
        return [*rows_shown, _summary(snapshot, totals, deep, version)]


_REPAIRED = "; repaired: the file is unindexed now, and use.optimize indexes it again"


def _columns(snapshot: TableSnapshot) -> list[str]:
    # A join by name moves its column to the front; an AddFile row has it where Delta puts it.
    return snapshot.log_files.columns


def _problems(table: ManagedTable, snapshot: TableSnapshot, deep: bool) -> DataFrame:
    """Returns all problems, computed once."""
    files = metadata.TaggedFiles.of(snapshot)
    from_log = (
        metadata.tag_problems(files)
        .unionByName(metadata.threshold_problems(files))
        .unionByName(metadata.overfull_problems(files))
        .unionByName(metadata.missing_files(table, snapshot))
        .unionByName(metadata.revision_problems(snapshot))
        .localCheckpoint()
    )
    if not deep:
        return from_log
    with_errors = from_log.where(F.col("severity") == ERROR).select("path")
    indexed = files.files.where("revision_id > 0").select(*rows.COLUMNS)
    sound = indexed.join(with_errors, "path", "left_anti").localCheckpoint()
    parts = rows.row_problems(snapshot, sound, table.root)
    return reduce(DataFrame.unionByName, parts, from_log)


def _summary(snapshot: TableSnapshot, totals: dict[tuple[str, str], int], deep: bool, version: int | None) -> CheckRow:
    """Returns the last row: what was checked, by which checks, and the number of problems of each."""
    counted = snapshot.files.agg(
        F.count(F.lit(1)).alias("files"), F.count_if(F.col("revision") > 0).alias("indexed")
    ).collect()[0]
    severities = {severity for _, severity in totals}
    severity = next((s for s in (ERROR, WARNING) if s in severities), "ok")
    ran = metadata.CHECKS + (rows.CHECKS if deep else ())
    counts = ", ".join(f"{count} {check}" for (check, _), count in sorted(totals.items())) or "no problem"
    message = (
        f"{counts} in {counted.indexed} indexed of {counted.files} files at version {snapshot.version}; "
        f"ran {', '.join(ran)}"
    )
    if sum(totals.values()) > MAX_PROBLEMS_SHOWN:
        message += f"; the first {MAX_PROBLEMS_SHOWN} problems are shown"
    if version is not None:
        message += f"; repaired by version {version}"
    return CheckRow(SUMMARY, severity, None, None, None, message)


CHECK = operation(check)
