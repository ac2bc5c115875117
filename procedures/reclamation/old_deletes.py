"""Deleted rows that no time travel can reach any more: the files that still store them are rewritten."""

from __future__ import annotations

from dataclasses import replace

from catalog.errors import UnknownNameError
from catalog.jvm.table_versions import TableVersions
from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.optimize import OPTIMIZE
from procedures.optimizer.engine import optimize
from procedures.optimizer.optimize_settings import OptimizeSettings
from procedures.optimizer.report import ReportRow
from procedures.optimizer.runs import Run
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
    table: ManagedTable, paths: list[str], min_ratio: float, run: Run, *, dry_run: bool
) -> list[ReportRow]:
    """Rewrites files without their deleted rows; the versions before stay readable as long as the old files stay.

    Args:
        table: the table.
        paths: the files.
        min_ratio: rewrites a file if deletion vectors hide more than this share of its rows.
        run: whose trigger and parameters the events name.
        dry_run: plans only.
    """
    rows: list[ReportRow] = []
    defaults = {p.name: None if p.required else p.default for p in OPTIMIZE.parameters}
    for start in range(0, len(paths), _FILES_PER_RUN):
        arguments = {
            **defaults,
            "table": table.name,
            "strategy": DELETE_COMPACTION,
            "files": paths[start : start + _FILES_PER_RUN],
            "options": {"min_deleted_ratio": str(min_ratio)},
            "dry_run": dry_run,
        }
        settings = replace(OptimizeSettings.of(arguments), parameters=run.parameters)
        part = Run.of(table, run.trigger, run.parameters, application().clock)
        try:
            rows += optimize(table, settings, part)
        except UnknownNameError:
            # Another writer has removed one of the files; the next reclamation finds the others.
            continue
    return rows
