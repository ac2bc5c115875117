"""Rewrites one group of files: read exactly these, lay out, write, verify, commit once."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.errors import (
    CommitUnknownError,
    ConcurrentChangeError,
    IndexConfigurationError,
    TableError,
    UseError,
)
from catalog.history.events import FileFacts, FilesStats, OptimizationEvent
from catalog.jvm.session import described_jobs, work_session
from catalog.jvm.table_transaction import TableTransaction
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.layout.index_columns import observation_of
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.step import Step, StepObserver, ignore_step
from procedures.layout.tags import WrittenFile, facts_of, tags_by_path
from procedures.layout.target import Target, target_for_new_rows, target_in_revision
from procedures.optimizer.plan import FileGroup
from procedures.rewrite.commit import commit

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RewriteContext:
    """What a rewrite is told besides its group.

    Attributes:
        trigger: who asked: ``call`` for SQL and Python.
        parameters: arguments of the call, for the event.
        observe: sees each step before it begins.
        clock: the time.
    """

    trigger: str = "call"
    parameters: Mapping[str, str] = field(default_factory=dict)
    observe: StepObserver = ignore_step
    clock: Clock = SYSTEM_CLOCK


@dataclass(frozen=True)
class RewriteResult:
    """A committed rewrite.

    Attributes:
        version: version of the commit.
        output_files: files written.
        output_bytes: their bytes.
        rows: rows in them.
        new_revision: number of the revision that the commit made, None when the rows fitted an existing one.
        event: what the commit tells of it.
        paths: the files written, as in the log.
        warning: what the owner should know about the data, None when nothing.
    """

    version: int
    output_files: int
    output_bytes: int
    rows: int
    new_revision: int | None
    event: OptimizationEvent
    paths: tuple[str, ...]
    warning: str | None = None


def rewrite(table: ManagedTable, group: FileGroup, context: RewriteContext) -> RewriteResult:
    """Rewrites the group's files, all of them and no others, in one commit.

    Args:
        table: the table.
        group: what a plan chose.
        context: see there.

    Raises:
        ConcurrentChangeError: another writer changed an input or the metadata; nothing was committed and the new
            files were deleted.
        RowsChangedError: rows written differ from rows read; nothing was committed.
        CommitUnknownError: the outcome is not known; every file is kept.
        TableError: the table was dropped meanwhile.
    """
    started = context.clock.now()
    session = work_session(table.spark)
    transaction = table.transaction(session)
    context.observe(Step.READ)
    _take(transaction, group)
    try:
        with described_jobs(session, f"USE {group.strategy}: {len(group.files)} files of {table.name}"):
            return _run(session, table, transaction, group, context, started)
    except CommitUnknownError:
        raise
    except BaseException as error:
        left = transaction.discard()
        if left:
            logger.warning("%d new files below %s could not be deleted; vacuum removes them.", left, table.location)
        if not isinstance(error, UseError) and isinstance(error, Exception) and not table.exists():
            raise TableError.missing(table.name, "it was dropped meanwhile") from error
        raise


def _take(transaction: TableTransaction, group: FileGroup) -> None:
    gone = len(group.files) - transaction.take((file.path, file.deletion_vector) for file in group.files)
    if gone:
        raise ConcurrentChangeError(f"{gone} of the plan's {len(group.files)} files were changed since it was made.")


def _run(
    session: SparkSession,
    table: ManagedTable,
    transaction: TableTransaction,
    group: FileGroup,
    context: RewriteContext,
    started: int,
) -> RewriteResult:
    snapshot = TableSnapshot.of(transaction.state())
    inputs = _input_facts(snapshot, group)
    rows = transaction.read()
    write_id = uuid.uuid4().hex
    context.observe(Step.PLACE)
    target = _target(session, table, snapshot, group, rows, context.clock)
    written: list[WrittenFile] = []
    if target is not None:
        # The settings of a rewrite's session collect statistics, so that blocks are counted while rows are written.
        writer = LayoutWriter(session, transaction, snapshot, context.observe, strict=True)
        written = writer.write_laid_out(target, rows)
    revision_id = target.columns.revision.revision_id if target else -1
    times = min(f.first_time for f in group.files), max(f.last_time for f in group.files)
    inputs_stats, outputs_stats = FilesStats.of(inputs), FilesStats.of(facts_of(written))
    event = OptimizationEvent(
        optimization_name=group.strategy,
        write_id=write_id,
        table_id=snapshot.table_id,
        revision_id=revision_id,
        started_at=started,
        finished_at=context.clock.now(),
        input_files_stats=inputs_stats,
        output_files_stats=outputs_stats,
        trigger=context.trigger,
        reason=group.reason,
        parameters=context.parameters,
        table_bytes=snapshot.bytes - inputs_stats.bytes + outputs_stats.bytes,
    )
    tags = tags_by_path(written, revision_id, write_id, *times)
    context.observe(Step.COMMIT)
    version = commit(table, transaction, event, tags)
    new_revision = revision_id if target and target.new_properties else None
    size, rows_written = sum(f.size for f in written), sum(f.rows for f in written)
    warning = target.warning if target else None
    paths = tuple(f.path for f in written)
    return RewriteResult(version, len(written), size, rows_written, new_revision, event, paths, warning)


def _target(
    session: SparkSession, table: ManagedTable, snapshot: TableSnapshot, group: FileGroup, rows: DataFrame, clock: Clock
) -> Target | None:
    """The revision and tree to write to; None when there are no rows to place."""
    found = snapshot.index_configuration
    if found is None:
        raise IndexConfigurationError.no_columns(table.name, group.strategy)
    if group.revision_id:
        revision = snapshot.revisions[group.revision_id]
        share = found.target_file_bytes / max(group.bytes, 1)
        replaced = [f.path for f in group.files]
        return target_in_revision(session, snapshot, revision, replaced, rows.count(), share)
    seen = observation_of(rows, found.transformers, found.logical_columns, found.declared, snapshot.latest_revision)
    if seen.weights.rows == 0:
        return None
    return target_for_new_rows(session, snapshot, found, seen, rows, lambda _: group.bytes, table.location, clock)


def _input_facts(snapshot: TableSnapshot, group: FileGroup) -> list[FileFacts]:
    levels = {f.path: f.level for f in group.files}
    found = snapshot.files.where(F.col("path").isin(list(levels))).select("path", "size", "rows", "blocks").collect()
    facts = {}
    for r in found:
        blocks = r.blocks or []
        facts[r.path] = FileFacts(
            path=r.path,
            size=r["size"],
            rows=r.rows,
            block_counts=tuple(b.elementCount for b in blocks),
            cube_ids=tuple(b.cubeId for b in blocks),
            level=levels[r.path],
        )
    return [facts[f.path] for f in group.files]
