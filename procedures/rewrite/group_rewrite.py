"""Rewrites one group of files: read exactly these, lay out, write, verify, commit the rows once."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
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
from catalog.properties.index_properties import IndexConfiguration
from catalog.table.file_columns import FileColumns
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.observation import Observation, observed
from procedures.layout.revision_choice import revision_for
from procedures.layout.step import Step, StepObserver, ignore_step
from procedures.layout.tags import WrittenFile, facts_of, tags_by_path
from procedures.layout.target import Target, target_for_new_rows, target_in_revision
from procedures.optimizer.plan import FileGroup, InputFile
from procedures.rewrite.commit import commit
from procedures.rewrite.revision_commit import Choice, commit_revision

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
        new_revision: number of the revision that was made for the rows, None when they fitted an existing one.
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


@dataclass(frozen=True)
class _Inputs:
    """The files of a group, as one transaction reads them.

    Attributes:
        transaction: reads and replaces them.
        snapshot: the version that it reads.
        rows: their rows.
    """

    transaction: TableTransaction
    snapshot: TableSnapshot
    rows: DataFrame

    @classmethod
    def take(cls, table: ManagedTable, session: SparkSession, group: FileGroup) -> _Inputs:
        """Begins a transaction on the newest version, and takes exactly the files of the group.

        Raises:
            ConcurrentChangeError: some of them were changed since the plan was made.
        """
        transaction = table.transaction(session)
        gone = len(group.files) - transaction.take((file.path, file.deletion_vector) for file in group.files)
        if gone:
            raise ConcurrentChangeError(
                f"{gone} of the plan's {len(group.files)} files were changed since it was made."
            )
        return cls(transaction, TableSnapshot.of(transaction.state(), table.location), transaction.read())


def rewrite(table: ManagedTable, group: FileGroup, context: RewriteContext) -> RewriteResult:
    """Rewrites the group's files, all of them and no others, in one commit.

    A new revision is committed before, by itself: then the commit of the rows changes no metadata, and no concurrent
    append conflicts with it. If the rows are not committed, the revision stays without files.

    Args:
        table: the table.
        group: what a plan chose.
        context: see there.

    Raises:
        ConcurrentChangeError: another writer changed an input or the metadata; no rows were committed and the new
            files were deleted.
        RowsChangedError: rows written differ from rows read; no rows were committed.
        CommitUnknownError: the outcome is not known; every file is kept.
        TableError: the table was dropped meanwhile.
    """
    started = context.clock.now()
    session = work_session(table.spark, group.bytes)
    context.observe(Step.READ)
    inputs = _Inputs.take(table, session, group)
    new_revision: int | None = None
    try:
        with described_jobs(session, f"USE {group.strategy}: {len(group.files)} files of {table.name}"):
            context.observe(Step.PLACE)
            seen = _observation(table, inputs, group)
            choose = partial(_choice, table, group, inputs.snapshot, seen, context.clock)
            if choose(inputs.snapshot)[1]:
                context.observe(Step.REVISION)
                new_revision = commit_revision(table, session, choose)
                inputs = _Inputs.take(table, session, group)
                _check_exists(choose(inputs.snapshot))
            target = _target(session, table, inputs, group, seen, context.clock)
            return _run(session, table, inputs, group, target, new_revision, context, started)
    except CommitUnknownError:
        raise
    except BaseException as error:
        left = inputs.transaction.discard()
        if left:
            logger.warning("%d new files below %s could not be deleted; vacuum removes them.", left, table.location)
        if not isinstance(error, UseError) and isinstance(error, Exception) and not table.exists():
            raise TableError.missing(table.name, "it was dropped meanwhile") from error
        if new_revision is not None and isinstance(error, UseError):
            error.message += f" Revision {new_revision} was made before, and has no files yet."
        raise


def _observation(table: ManagedTable, inputs: _Inputs, group: FileGroup) -> Observation | None:
    """What the rows say about the revision that they need; None when they stay in theirs."""
    found = _configuration(table, inputs.snapshot, group)
    if group.revision_id:
        return None
    return observed(inputs.rows, inputs.snapshot, found, group.rows, found.target_file_bytes / max(group.bytes, 1))


def _configuration(table: ManagedTable, snapshot: TableSnapshot, group: FileGroup) -> IndexConfiguration:
    found = snapshot.index_configuration
    if found is None:
        raise IndexConfigurationError.no_columns(table.name, group.strategy)
    return found


def _choice(
    table: ManagedTable,
    group: FileGroup,
    observed: TableSnapshot,
    seen: Observation | None,
    clock: Clock,
    snapshot: TableSnapshot,
) -> Choice:
    """The revision that the rows need in a version of the table.

    Args:
        table: the table.
        group: the group.
        observed: the version in which the rows were observed.
        seen: what was observed; None when the rows stay in their revision.
        clock: the time.
        snapshot: the version, in which another run may have made a revision meanwhile.

    Raises:
        ConcurrentChangeError: the version indexes other columns than the rows were observed for, or is another table's.
    """
    if seen is None or seen.weights.rows == 0:
        return group.revision_id, {}
    if snapshot.table_id != observed.table_id:
        raise ConcurrentChangeError("The table was replaced since the plan was made.")
    found, before = _configuration(table, snapshot, group), _configuration(table, observed, group)
    if (found.transformers, found.declared) != (before.transformers, before.declared):
        raise ConcurrentChangeError("The index columns were changed since the plan was made.")
    rows_of_file = int(found.target_file_bytes * seen.weights.rows / max(group.bytes, 1))
    revision, properties = revision_for(
        snapshot, found, seen.stats, rows_of_file, table.location, seen.weights, clock, observed
    )
    return revision.revision_id, properties


def _check_exists(choice: Choice) -> None:
    if choice[1]:
        raise ConcurrentChangeError("Another run has made a revision meanwhile, which does not hold the rows.")


def _target(
    session: SparkSession,
    table: ManagedTable,
    inputs: _Inputs,
    group: FileGroup,
    seen: Observation | None,
    clock: Clock,
) -> Target | None:
    """The revision and tree to write to; None when there are no rows to place."""
    snapshot, rows = inputs.snapshot, inputs.rows
    found = _configuration(table, snapshot, group)
    replaced = [f.path for f in group.files]
    if seen is None:
        revision = snapshot.revisions[group.revision_id]
        share = found.target_file_bytes / max(group.bytes, 1)
        expected = rows.count() if group.rows is None else group.rows
        target = target_in_revision(session, snapshot, revision, replaced, rows, expected, share)
        return replace(target, weight_span=group.weight_span)
    if seen.weights.rows == 0:
        return None
    return target_for_new_rows(
        session, snapshot, found, seen, rows, lambda _: group.bytes, table.location, clock, replaced
    )


def _run(
    session: SparkSession,
    table: ManagedTable,
    inputs: _Inputs,
    group: FileGroup,
    target: Target | None,
    new_revision: int | None,
    context: RewriteContext,
    started: int,
) -> RewriteResult:
    transaction, snapshot = inputs.transaction, inputs.snapshot
    facts, rewrites = _input_facts(snapshot, group)
    write_id = uuid.uuid4().hex
    written: list[WrittenFile] = []
    if target is not None:
        # The settings of a rewrite's session collect statistics, so that blocks are counted while rows are written.
        writer = LayoutWriter(session, transaction, snapshot, context.observe, strict=True)
        written = writer.write_laid_out(target, inputs.rows)
    revision_id = target.columns.revision.revision_id if target else -1
    times = min(f.first_time for f in group.files), max(f.last_time for f in group.files)
    inputs_stats, outputs_stats = FilesStats.of(facts), FilesStats.of(facts_of(written))
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
    tags = tags_by_path(written, revision_id, write_id, *times, rewrites + 1)
    context.observe(Step.COMMIT)
    version = commit(table, transaction, event, tags)
    size, rows_written = sum(f.size for f in written), sum(f.rows for f in written)
    warning = target.warning if target else None
    paths = tuple(f.path for f in written)
    return RewriteResult(version, len(written), size, rows_written, new_revision, event, paths, warning)


def _input_facts(snapshot: TableSnapshot, group: FileGroup) -> tuple[list[FileFacts], float]:
    """The files as the event tells of them, and how many times their rows were rewritten, on average by bytes."""
    columns = snapshot.columns
    if columns is not None:
        positions = [columns.position_of(f.path) for f in group.files]
        rewrites = _average(columns.rewrites[positions], columns.size[positions])
        return [_facts_in_memory(columns, f) for f in group.files], rewrites
    levels = {f.path: f.level for f in group.files}
    files = snapshot.file_rows.where(F.col("path").isin(list(levels)))
    found = files.select("path", "size", "rows", "blocks", "rewrites").collect()
    rewrites = _average(np.array([r.rewrites for r in found]), np.array([r["size"] for r in found]))
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
    return [facts[f.path] for f in group.files], rewrites


def _average(values: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    return float((values * sizes).sum() / max(sizes.sum(), 1))


def _facts_in_memory(columns: FileColumns, file: InputFile) -> FileFacts:
    blocks = columns.blocks_in(columns.position_of(file.path))
    return FileFacts(
        path=file.path,
        size=file.size,
        rows=file.rows,
        block_counts=tuple(int(count) for count in blocks.elements),
        cube_ids=tuple(blocks.cube_ids[cube] for cube in blocks.cube),
        level=file.level,
    )
