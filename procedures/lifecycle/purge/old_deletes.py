"""Deleted rows that no time travel can reach any more: the files that still store them are rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import functions as F

from catalog.errors import UnknownNameError
from catalog.jvm.table_versions import TableVersions
from catalog.table.managed_table import ManagedTable
from procedures.declare.runs import Run
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.report import OptimizeRow
from procedures.loop.table_optimizer import optimize
from procedures.process.application import application
from procedures.selection.delete_compaction import NAME as DELETE_COMPACTION

# Files of one run: their paths are part of its conditions.
_FILES_PER_RUN = 1000


def files_with_old_deletes(versions: TableVersions, version: int, newest: int) -> list[str]:
    """Returns the paths of files whose deletion vectors are as old as a version, as the log has them.

    A file and its deletion vector are live in both versions, so every version between them hides the same rows.

    Args:
        versions: the versions of the table.
        version: the oldest version that stays readable.
        newest: the newest version.
    """
    now, then = versions.files_with_deletes(newest), versions.files_with_deletes(version)
    rows = now.join(then, ["path", "deletion_vector"], "left_semi").select("path").orderBy("path").collect()
    return [row.path for row in rows]


def compact_old_deletes(
    table: ManagedTable,
    paths: list[str],
    min_ratio: float,
    run: Run,
    *,
    is_stopped: Callable[[], bool],
    dry_run: bool,
    quiet_millis: int = 0,
) -> list[OptimizeRow]:
    """Rewrites files without their deleted rows; the versions before stay readable as long as the old files stay.

    Args:
        table: the table.
        paths: the files.
        min_ratio: rewrites a file if deletion vectors hide more than this share of its rows.
        run: whose trigger and parameters the events name, and which may be asked to stop between groups.
        is_stopped: whether no further files may be rewritten.
        dry_run: plans only.
        quiet_millis: see ``OptimizeSettings``.
    """
    rows: list[OptimizeRow] = []

    def compact(files: Sequence[str]) -> list[OptimizeRow]:
        arguments = {
            "table": table.name,
            "strategy": DELETE_COMPACTION,
            "files": list(files),
            "options": {"min_deleted_ratio": str(min_ratio)},
            "dry_run": dry_run,
        }
        settings = replace(OptimizeSettings.of(arguments), parameters=run.parameters, quiet_millis=quiet_millis)
        return optimize(table, settings, Run.of(table, run.trigger, run.parameters, application().clock, run))

    for start in range(0, len(paths), _FILES_PER_RUN):
        if is_stopped():
            break
        rows += compact_remaining(paths[start : start + _FILES_PER_RUN], compact, partial(_live_paths, table))
    return rows


def compact_remaining(
    paths: Sequence[str],
    compact: Callable[[Sequence[str]], list[OptimizeRow]],
    live_paths: Callable[[Sequence[str]], list[str]],
) -> list[OptimizeRow]:
    """Compacts files; leaves out those that other writers remove in the meantime.

    Args:
        paths: the files.
        compact: compacts files; raises ``UnknownNameError`` if the table no longer has one of them.
        live_paths: returns the files that the table still has.

    Returns:
        The report of ``compact``; empty if no file is left.

    Raises:
        UnknownNameError: ``compact`` raises it although the table has all files.
    """
    if not paths:
        return []
    try:
        return compact(paths)
    except UnknownNameError:
        remaining = live_paths(paths)
        if len(remaining) >= len(paths):
            raise
    return compact_remaining(remaining, compact, live_paths)


def _live_paths(table: ManagedTable, paths: Sequence[str]) -> list[str]:
    files = table.snapshot().log_files
    return [row.path for row in files.where(F.col("path").isin(list(paths))).select("path").orderBy("path").collect()]
