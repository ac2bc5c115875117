"""``CALL use.optimize``: the first strategy that finds files is used, its group is rewritten, until none finds any."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from pyspark.sql import DataFrame

from catalog.errors import ConcurrentChangeError, IndexConfigurationError, UseError
from catalog.properties import IndexConfiguration
from catalog.session import described_jobs, interrupted
from catalog.snapshot import TableSnapshot
from catalog.tables import ManagedTable
from procedures.declaration import Call, Parameter, Procedure
from procedures.optimize_settings import OptimizeSettings
from procedures.plan import FileGroup, Plan, SkippedGroup
from procedures.rewrite.group_rewrite import RewriteContext, RewriteResult, rewrite

logger = logging.getLogger(__name__)

# A table under constant change: after so many lost races in a row the rest is left for the next run.
MAX_CONFLICTS_IN_A_ROW = 5


@dataclass(frozen=True)
class ReportRow:
    """One row of the procedure's result."""

    iteration: int
    strategy: str | None
    reason: str
    state: str
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    rows: int | None
    version: int | None
    duration_ms: int
    message: str


RESULT = (
    "iteration int, strategy string, reason string, state string, input_files bigint, input_bytes bigint, "
    "output_files bigint, output_bytes bigint, rows bigint, version bigint, duration_ms bigint, message string"
)


def make_plan(table: ManagedTable, settings: OptimizeSettings) -> Plan:
    """Asks the strategies in order, and takes the first group found; reads metadata only.

    Raises:
        IndexConfigurationError: a strategy needs index columns and the table has none.
    """
    snapshot = table.snapshot()
    _check_index(table, snapshot, settings)
    skipped: list[SkippedGroup] = []
    notes: list[str] = []
    with described_jobs(table.spark, f"USE optimize: planning {table.name}"):
        for strategy in settings.strategies:
            selection = strategy.select(snapshot, settings.selection[strategy.name])
            skipped += selection.skipped
            if selection.group is not None:
                return Plan(snapshot.version, selection.group, tuple(skipped))
            if selection.note:
                notes.append(selection.note)
    return Plan(snapshot.version, None, tuple(skipped), tuple(notes))


def _check_index(table: ManagedTable, snapshot: TableSnapshot, settings: OptimizeSettings) -> None:
    configuration = IndexConfiguration.of(
        snapshot.configuration, snapshot.schema, snapshot.latest_revision, snapshot.partition_columns
    )
    needing = [s.name for s in settings.strategies if s.needs_index_columns]
    if configuration is None and needing:
        raise IndexConfigurationError.no_columns(table.name, needing[0])


def optimize(table: ManagedTable, settings: OptimizeSettings, context: RewriteContext) -> list[ReportRow]:
    """Plans and rewrites group after group; each group is committed as soon as it is done.

    Ends when no strategy finds files, a limit is reached, the caller is interrupted (between groups), or too many
    races were lost in a row; the last row says which.

    Raises:
        UseError: the arguments or the table do not allow it (before anything is touched), or a rewrite failed for
            another reason than a lost race; groups committed before stay committed.
    """
    started = time.monotonic()
    report: list[ReportRow] = []
    done_bytes = committed = conflicts = 0
    writable = False
    iteration = 0
    seen_skips: set[SkippedGroup] = set()
    while True:
        stop = _limit_reached(table, settings, committed, done_bytes, time.monotonic() - started)
        if stop and iteration:
            report.append(_idle(iteration, "LIMIT_REACHED", None, stop))
            return report
        iteration += 1
        plan = make_plan(table, settings)
        for group in plan.skipped:
            if group not in seen_skips:
                seen_skips.add(group)
                report.append(_skipped(iteration, group, plan.version))
        if plan.group is None:
            if not report:
                report.append(_idle(iteration, "NOTHING_TO_DO", plan.version, "; ".join(plan.notes)))
            return report
        if settings.dry_run:
            report.append(_planned(iteration, plan.group, plan.version))
            return report
        if not writable:
            table.check_writable()
            writable = True
        begun = time.monotonic()
        logger.info("%s: iteration %d, %s", table.name, iteration, plan.group.note)
        try:
            result = rewrite(table, plan.group, context)
        except ConcurrentChangeError as error:
            conflicts += 1
            report.append(_failed(iteration, plan.group, begun, error))
            if conflicts >= MAX_CONFLICTS_IN_A_ROW:
                return report
            continue
        except UseError as error:
            error.message += f" {committed} groups were committed before." if committed else ""
            raise
        conflicts = 0
        committed += 1
        done_bytes += plan.group.bytes
        report.append(_committed(iteration, plan.group, begun, result))


def _limit_reached(
    table: ManagedTable, settings: OptimizeSettings, committed: int, done_bytes: int, seconds: float
) -> str | None:
    if interrupted(table.spark):
        return "interrupted: the groups above are committed"
    if settings.max_iterations is not None and committed >= settings.max_iterations:
        return f"max_iterations = {settings.max_iterations} was reached; more may remain"
    if settings.max_bytes is not None and done_bytes >= settings.max_bytes:
        return f"max_bytes = {settings.max_bytes} was reached after {done_bytes} bytes; more may remain"
    if settings.max_seconds is not None and seconds >= settings.max_seconds:
        return f"max_duration = {settings.max_seconds:g} seconds was reached; more may remain"
    return None


def _idle(iteration: int, reason: str, version: int | None, message: str) -> ReportRow:
    return ReportRow(iteration, None, reason, "skipped", 0, 0, 0, 0, 0, version, 0, message)


def _skipped(iteration: int, group: SkippedGroup, version: int) -> ReportRow:
    return ReportRow(
        iteration, group.strategy, group.reason, "skipped", group.files, group.bytes, 0, 0, 0, version, 0, group.note
    )


def _planned(iteration: int, group: FileGroup, version: int) -> ReportRow:
    names = ", ".join(f.path for f in group.files[:10]) + (", …" if len(group.files) > 10 else "")
    return ReportRow(
        iteration,
        group.strategy,
        group.reason,
        "planned",
        len(group.files),
        group.bytes,
        0,
        0,
        group.rows,
        version,
        0,
        f"{group.note}: {names}",
    )


def _failed(iteration: int, group: FileGroup, begun: float, error: UseError) -> ReportRow:
    milliseconds = int((time.monotonic() - begun) * 1000)
    files, size = len(group.files), group.bytes
    return ReportRow(
        iteration, group.strategy, error.code, "failed", files, size, 0, 0, 0, None, milliseconds, error.message
    )


def _committed(iteration: int, group: FileGroup, begun: float, result: RewriteResult) -> ReportRow:
    return ReportRow(
        iteration,
        group.strategy,
        group.reason,
        "committed",
        len(group.files),
        group.bytes,
        result.output_files,
        result.output_bytes,
        result.rows,
        result.version,
        int((time.monotonic() - begun) * 1000),
        # A new revision changes the table's metadata, which fails writers in flight: never silently.
        "; ".join(
            [group.note]
            + ([f"made revision {result.new_revision}"] if result.new_revision else [])
            + ([result.warning] if result.warning else [])
        ),
    )


def _run(call: Call) -> DataFrame:
    settings = OptimizeSettings.of(call.arguments)
    table = ManagedTable.find(call.spark, call["table"])
    rows: Sequence[ReportRow] = optimize(table, settings, RewriteContext("call", settings.parameters))
    return call.spark.createDataFrame([astuple(row) for row in rows], RESULT)


OPTIMIZE = Procedure(
    "optimize",
    "Indexes unindexed files and merges fragmented cubes of a table, group by group, each in one commit.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter(
            "strategy",
            "STRING",
            "A strategy, or several separated by commas, asked in this order; UnindexedFiles, LeveledCompaction when "
            "left out.",
            None,
        ),
        Parameter(
            "revision_id",
            "BIGINT",
            "Revision to optimize: 0 for unindexed files only; the newest when left out.",
            None,
        ),
        Parameter(
            "bytes_per_iter",
            "BIGINT",
            "Compaction takes files until their bytes cross this, the crossing file included.",
            1_000_000_000,
        ),
        Parameter("max_iterations", "INT", "Commits at most this many groups.", None),
        Parameter("max_bytes", "BIGINT", "Starts no further group once this many bytes were rewritten.", None),
        Parameter("max_duration", "STRING", "Starts no further group after this time, e.g. '10 minutes'.", None),
        Parameter("where", "STRING", "Only files that may match this predicate. Not available yet.", None),
        Parameter("files", "ARRAY<STRING>", "Only these files. Not available yet.", None),
        Parameter(
            "revision_rewrite",
            "BOOLEAN",
            "First index the files of revision_id, or of every older revision, again into the newest.",
            False,
        ),
        Parameter("parallelism", "INT", "Groups rewritten at the same time. Only 1 is available yet.", 1),
        Parameter("dry_run", "BOOLEAN", "Show the next group and change nothing.", False),
        Parameter("options", "MAP<STRING,STRING>", "Options of the strategies, such as batch_bytes.", {}),
    ),
    RESULT,
    _run,
)
