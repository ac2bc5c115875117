"""Rewrites one group of files: read exactly these, write their rows, verify, commit the rows once."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace

from catalog.counted_nouns import counted
from catalog.errors import CommitUnknownError, RowsChangedError, TableError, UseError
from catalog.history.events import FileFacts, FilesStats, OptimizationEvent
from catalog.jvm.session import described_jobs, work_session
from catalog.jvm.table_transaction import TableTransaction
from catalog.state.write_records import WriteRecord, folders_of, forget_write, record_write
from catalog.table.managed_table import ManagedTable
from procedures.groups.group import Concatenate, Group, Relayout
from procedures.layout.step import Step
from procedures.rewrite.commit import commit
from procedures.rewrite.inputs import InputFacts, Inputs
from procedures.rewrite.layout_rewrite import LayoutRewrite
from procedures.rewrite.results import RewriteContext, RewriteOutput, RewriteResult
from procedures.rewrite.run_rewrite import RunRewrite

logger = logging.getLogger(__name__)


def rewrite(table: ManagedTable, group: Group, context: RewriteContext) -> RewriteResult:
    """Rewrites the group's files, all of them and no others, in one commit.

    A new revision has a commit of its own before: then the commit of the rows changes no metadata, and no concurrent
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
    if not isinstance(group, Concatenate | Relayout):
        raise TypeError(f"A {type(group).__name__} is neither a Relayout nor a Concatenate.")
    started = context.clock.now()
    session = work_session(table.spark, group.bytes)
    context.observe(Step.READ)
    write_id = uuid.uuid4().hex
    write = WriteRecord(write_id, started, folders_of(file.path for file in group.files))
    inputs = Inputs.begin(table, session, group, write)
    new_revision: int | None = None
    record_write(table, write)
    try:
        with described_jobs(session, f"USE {group.strategy}: {counted(len(group.files), 'file')} of {table.name}"):
            if isinstance(group, Concatenate):
                facts = InputFacts.of(inputs.snapshot, group)
                output = RunRewrite(session, inputs, group, facts, write_id, context).write()
            else:
                context.observe(Step.PLACE)
                layout = LayoutRewrite(table, session, group, context)
                rows = layout.measured(inputs)
                if rows.needs_commit:
                    new_revision = layout.commit_revision(rows)
                    inputs = Inputs.begin(table, session, group, write)
                    rows = layout.after_commit(rows, inputs)
                facts = InputFacts.of(inputs.snapshot, group)
                output = layout.write(inputs, rows, facts, write_id)
            check_rows(group, output.facts, inputs.transaction)
            result = _committed(table, inputs, group, facts, output, write_id, context, started)
            forget_write(table, write_id)
            return replace(result, new_revision=new_revision)
    except CommitUnknownError:
        raise
    except BaseException as error:
        left = inputs.transaction.discard()
        if not left:
            forget_write(table, write_id)
        else:
            logger.warning("%d new files below %s could not be deleted; vacuum removes them.", left, table.location)
        if not isinstance(error, UseError) and isinstance(error, Exception) and not table.exists():
            raise TableError.missing(table.name, "it was dropped meanwhile") from error
        if new_revision is not None and isinstance(error, UseError):
            error.message += f" Revision {new_revision} was made before, and has no files yet."
        raise


def check_rows(group: Group, written: Sequence[FileFacts], transaction: TableTransaction) -> None:
    """Compares the rows of written files with those of their inputs, less those that are removed.

    Args:
        group: the inputs. If the log does not know their rows, the files are counted.
        written: the files written.
        transaction: it has written them.

    Raises:
        RowsChangedError: other rows were written; a file that was not read has rows; or rows moved to another time that
            partitions the table.
    """
    removal = group.removal if isinstance(group, Concatenate) else None
    rows = transaction.count([file.path for file in group.files]) if group.rows is None else group.rows
    expected = rows - (0 if removal is None else removal.count)
    if all(file.rows is not None for file in written):
        count = sum(file.rows or 0 for file in written)
        if count != expected:
            raise RowsChangedError(f"{expected} rows were to be written and {count} were; nothing was committed.")
    if isinstance(group, Concatenate) and removal is None and (unread := _unread(group)):
        # Another writer may have recorded wrong numbers.
        count = transaction.count(unread)
        if count:
            raise RowsChangedError(
                f"{counted(count, 'row')} of files that have none according to the log, such as {unread[0]}, would be "
                "lost; nothing was committed."
            )
    if any(0 <= before < after for before, after in transaction.rows_by_time().values()):
        raise RowsChangedError(
            "Rows moved to the partition of another time, because the session's time zone repeats an hour; nothing was "
            "committed. Run it with SET TIME ZONE 'UTC'."
        )


def _unread(group: Concatenate) -> list[str]:
    read = {path for run in group.runs for path in run.paths}
    return [file.path for file in group.files if file.path not in read]


def _committed(
    table: ManagedTable,
    inputs: Inputs,
    group: Group,
    facts: InputFacts,
    output: RewriteOutput,
    write_id: str,
    context: RewriteContext,
    started: int,
) -> RewriteResult:
    """Commits what was written, in place of the inputs."""
    snapshot = inputs.snapshot
    inputs_stats, outputs_stats = FilesStats.of(facts.facts), FilesStats.of(output.facts)
    event = OptimizationEvent(
        optimization_name=group.strategy,
        write_id=write_id,
        table_id=snapshot.table_id,
        revision_id=output.revision_id,
        started_at=started,
        finished_at=context.clock.now(),
        input_files_stats=inputs_stats,
        output_files_stats=outputs_stats,
        trigger=context.trigger,
        reason=group.reason,
        parameters=context.parameters,
        table_bytes=snapshot.bytes - inputs_stats.bytes + outputs_stats.bytes,
    )
    context.observe(Step.COMMIT)
    if context.hold is not None:
        inputs.transaction.hold(context.hold)
    version = commit(
        table, inputs.transaction, event, output.tags, isinstance(group, Concatenate) and group.removal is not None
    )
    rows = sum(file.rows or 0 for file in output.facts)
    return RewriteResult(
        version,
        len(output.facts),
        sum(file.size for file in output.facts),
        rows,
        None,
        event,
        tuple(file.path for file in output.facts),
        output.warning,
    )
