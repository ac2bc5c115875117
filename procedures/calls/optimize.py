"""``CALL use.optimize``: rewrites the files of a table, group by group."""

from __future__ import annotations

from typing import Annotated

from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import AT_LEAST_ONE, Constraint, Int, TableName, operation
from procedures.declare.runs import Run
from procedures.loop import table_optimizer
from procedures.loop.optimize_parameters import MaxBytes, MaxDuration, Parallelism, RowsWhere
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.report import OptimizeRow
from procedures.process.application import application

SHORT = ("strategy", "reason", "state", "input_files", "output_files", "rows", "version", "message")
"""The result columns with ``details => false``."""


def optimize(
    call: Call,
    table: TableName,
    *,
    strategy: str | None = None,
    revision_id: int | None = None,
    bytes_per_iter: Annotated[int | None, AT_LEAST_ONE] = None,
    max_iterations: Annotated[Int | None, AT_LEAST_ONE] = None,
    max_bytes: MaxBytes = None,
    max_duration: MaxDuration = None,
    where: RowsWhere = None,
    files: Annotated[list[str] | tuple[str, ...] | None, Constraint(not_blank="paths of files")] = None,
    revision_rewrite: bool = False,
    parallelism: Parallelism = 1,
    dry_run: bool = False,
    options: dict[str, str] | None = None,
    plan: str | None = None,
    groups: list[int] | tuple[int, ...] | None = None,
    quiet_period: str | None = None,
) -> list[OptimizeRow]:
    """Indexes unindexed files and merges fragmented cubes of a table, group by group, each in one commit.

    In the driver, Ctrl-C lets the current groups commit and starts no further group.

    Args:
        strategy: One or more strategies, separated by commas, in order of priority; UnindexedFiles, SortedRunCompaction
            by default.
        revision_id: Revision to compact or to rewrite; 0 for unindexed files only. The newest by default.
        bytes_per_iter: An iteration takes files until their total size exceeds this number of bytes, including the last
            file; 1000000000 by default, and batch_bytes for the strategies that have this option.
        max_iterations: Maximum number of groups to commit.
        files: Rewrites only these files, with paths as in `index_files`.
        revision_rewrite: First indexes the files of revision_id, or of every older revision, again in the newest
            revision.
        dry_run: Shows the next groups and changes nothing.
        options: Options of the strategies, such as batch_bytes.
        plan: Rewrites groups of this stored plan, which use.plan has made, in place of what strategies choose.
        groups: With plan: only these groups; all unfinished ones by default.
        quiet_period: Does not rewrite files that a DELETE, UPDATE or MERGE is likely to read, as far as the commits of
            this time show, for example '10 minutes'. By default, rewrites any file.

    Returns:
        A row per group and outcome; in a dry run, a row per group.

    Raises:
        UseError: an argument is invalid or the table cannot be optimized, before any data is read; or a group failed
            for a reason other than a conflict. Earlier commits stay.
    """
    arguments = {
        "strategy": strategy,
        "revision_id": revision_id,
        "bytes_per_iter": bytes_per_iter,
        "max_iterations": max_iterations,
        "max_bytes": max_bytes,
        "max_duration": max_duration,
        "where": where,
        "files": files,
        "revision_rewrite": revision_rewrite,
        "parallelism": parallelism,
        "dry_run": dry_run,
        "options": options or {},
        "plan": plan,
        "groups": groups,
        "quiet_period": quiet_period,
    }
    return run_optimize(call, table, OptimizeSettings.of(arguments))


def run_optimize(call: Call, name: str, settings: OptimizeSettings) -> list[OptimizeRow]:
    """Optimizes a table for a call, and returns the rows of the report.

    Args:
        call: of ``use.optimize``, or of an operation that runs strategies of it.
        name: name or path of the table.
        settings: what to do.
    """
    table = ManagedTable.find(call.spark, name)
    run = Run.of(table, call.trigger, settings.parameters, application().clock)
    return list(table_optimizer.optimize(table, settings, run))


OPTIMIZE = operation(optimize, short=SHORT)
