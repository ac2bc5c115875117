"""The loop of ``optimize``: the first strategy that finds files is used, its groups are rewritten, until none does."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.errors import (
    CommitUnknownError,
    ConcurrentChangeError,
    IndexConfigurationError,
    UnknownNameError,
    UseError,
)
from catalog.history.event_store import reconcile, record, record_failure
from catalog.history.events import FileFacts, FilesTotals, event_without_commit
from catalog.jvm.java_errors import known_error
from catalog.jvm.session import described_jobs, interrupted
from catalog.properties.checks import described
from catalog.state import lease
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.optimizer.group_runs import GroupOutcome, run_groups, stopped_by_keyboard
from procedures.optimizer.optimize_settings import OptimizeSettings
from procedures.optimizer.plan import FileGroup, Plan, SkippedGroup
from procedures.optimizer.progress import Progress
from procedures.optimizer.report import (
    ReportRow,
    committed_row,
    failed_row,
    nothing_row,
    planned_row,
    skipped_row,
    with_warnings,
)
from procedures.optimizer.run_selection import RunSelection
from procedures.optimizer.runs import RUNS, Run
from procedures.rewrite.group_rewrite import RewriteContext, RewriteResult, rewrite
from procedures.selection.revision_rewrite import former_index_note
from procedures.selection.unindexed_files import NAME as UNINDEXED_FILES

logger = logging.getLogger(__name__)

# A table under constant change: after so many lost races in a row the rest is left for the next run.
MAX_CONFLICTS_IN_A_ROW = 5


def make_plan(
    table: ManagedTable,
    settings: OptimizeSettings,
    most: int = 1,
    most_bytes: int | None = None,
    selection_of_run: RunSelection | None = None,
) -> Plan:
    """Asks the strategies in order, and takes groups of the first that finds any; reads metadata only.

    Args:
        table: the table.
        settings: what to look for.
        most: groups wanted at most.
        most_bytes: once the groups have so many bytes, no further one is wanted; None = no limit.
        selection_of_run: the selectors of the run; new ones when left out.

    Raises:
        IndexConfigurationError: a strategy needs index columns and the table has none.
        UnknownNameError: the table has no revision of the number that is asked for.
    """
    snapshot = table.snapshot()
    _check_index(table, snapshot, settings)
    _check_revisions(snapshot, settings)
    # Files that a first indexing leaves to another group would lose the race for the new revision.
    most = most if snapshot.latest_revision is not None else 1
    skipped: list[SkippedGroup] = []
    notes: list[str] = []
    warnings = tuple(described(snapshot.property_errors))
    selectors = selection_of_run or RunSelection(settings)
    with described_jobs(table.spark, f"USE optimize: planning {table.name}"):
        looked_at = selectors.restricted(snapshot)
        for _, selector in selectors:
            groups: list[FileGroup] = []
            rest = looked_at
            while len(groups) < most:
                selection = selector.select(rest)
                skipped += [s for s in selection.skipped if s not in skipped]
                if selection.group is None:
                    notes += [selection.note] if selection.note and not groups else []
                    break
                groups.append(selection.group)
                if most_bytes is not None and sum(group.bytes for group in groups) >= most_bytes:
                    break
                rest = rest.without([f.path for f in selection.group.files])
            if groups:
                return Plan(snapshot.version, tuple(groups), tuple(skipped), warnings=warnings)
        former = former_index_note(snapshot)
        notes += [former] if former else []
    return Plan(snapshot.version, (), tuple(skipped), tuple(notes), warnings)


def _check_index(table: ManagedTable, snapshot: TableSnapshot, settings: OptimizeSettings) -> None:
    configuration = snapshot.index_configuration
    needing = [s.name for s in settings.strategies if s.needs_index_columns]
    if configuration is None and needing:
        raise IndexConfigurationError.no_columns(table.name, needing[0], snapshot.property_errors)


def _check_revisions(snapshot: TableSnapshot, settings: OptimizeSettings) -> None:
    """Refuses an unknown revision before a strategy that needs none, such as UnindexedFiles, changes the table."""
    known = {number for number in snapshot.revisions if number > 0}
    if not known and UNINDEXED_FILES in settings.selection:
        known = {1}  # the one that the first indexing makes
    for number in {told.revision_id for told in settings.selection.values() if told.revision_id}:
        if number not in known:
            raise UnknownNameError.of("revision", str(number), [str(n) for n in known])


@dataclass
class _State:
    """Where a run is.

    Attributes:
        selection: the selectors of the run.
        iteration: plans made.
        conflicts: lost races since the last commit.
        report: rows so far.
        seen_skips: groups passed over that are in the report.
        last_written: strategy and files of the last iteration's output.
        batch_bytes: most bytes of a batch after lost races, None when the last group was committed.
        warnings: mistakes in the table's properties.
    """

    selection: RunSelection
    iteration: int = 0
    conflicts: int = 0
    report: list[ReportRow] = field(default_factory=list)
    seen_skips: set[SkippedGroup] = field(default_factory=set)
    last_written: tuple[str, frozenset[str]] = ("", frozenset())
    batch_bytes: int | None = None
    warnings: tuple[str, ...] = ()


def optimize(
    table: ManagedTable, settings: OptimizeSettings, run: Run, observe: Callable[[str], None] = lambda _: None
) -> list[ReportRow]:
    """Plans and rewrites group after group; each group is committed as soon as it is done.

    Ends when no strategy finds files, a limit is reached, somebody asks for it (between groups), another run holds the
    table's lease, or too many races were lost in a row; the last row says which.

    Args:
        table: the table.
        settings: what to do.
        run: its identity, and the way to stop it.
        observe: called with the name of each step of a rewrite before it begins: ``read``, ``write``, ``verify``,
            ``commit``; a caller that raises in it stops the rewrite there.

    Raises:
        UseError: the arguments or the table do not allow it (before anything is touched), or a rewrite failed for
            another reason than a lost race; groups committed before stay committed.
    """
    RUNS.begin(run)
    try:
        with ExitStack() as stack:
            stack.enter_context(stopped_by_keyboard(run))
            state = _State(RunSelection(settings))
            context = RewriteContext(run.trigger, run.parameters, observe)
            return with_warnings(_optimize(table, settings, run, context, state, stack), state.warnings)
    finally:
        RUNS.end(run)


def _optimize(
    table: ManagedTable,
    settings: OptimizeSettings,
    run: Run,
    context: RewriteContext,
    state: _State,
    stack: ExitStack,
) -> list[ReportRow]:
    progress: Progress | None = None
    while True:
        stop = _stop_reason(table, settings, run)
        if stop and state.iteration:
            return [*state.report, _stopped_row(state, *stop)]
        held = None if settings.dry_run or progress else lease.holder_of(table, lease.now_millis())
        if held is not None:
            return [_held_row(held)]
        try:
            plan = _next_plan(table, settings, run, state)
        except (PySparkException, Py4JError):
            # Who cancels a statement cancels its jobs too, those of a plan among them.
            if not interrupted(table.spark):
                raise
            return [*state.report, _stopped_row(state, *_interrupted(run))]
        if plan is None:
            return state.report
        if progress is None:
            table.check_writable()
            held = lease.acquire(table, run.run_id, run.trigger, lease.now_millis())
            if held is not None:
                return [_held_row(held)]
            stack.enter_context(lease.renewed(table, run.run_id, run.trigger, lease.now_millis))
            reconcile(table)
            progress = stack.enter_context(Progress(table.spark, f"optimize {table.name}"))
        _rewrite_groups(table, plan, run, context, state, progress)
        if state.conflicts >= MAX_CONFLICTS_IN_A_ROW:
            return state.report


def _next_plan(table: ManagedTable, settings: OptimizeSettings, run: Run, state: _State) -> Plan | None:
    """The plan of the next iteration; None when the run ends with it, for the reason in its last row."""
    state.iteration += 1
    run.current = "planning"
    state.selection.limit_batches(state.batch_bytes)
    bytes_left = None if settings.max_bytes is None else settings.max_bytes - run.committed_bytes
    plan = make_plan(table, settings, _most_groups(settings, run), bytes_left, state.selection)
    state.warnings = plan.warnings
    for passed_over in plan.skipped:
        if passed_over not in state.seen_skips:
            state.seen_skips.add(passed_over)
            state.report.append(skipped_row(state.iteration, passed_over, plan.version))
    if settings.dry_run:
        state.report += [planned_row(state.iteration, group, plan.version) for group in plan.groups]
    if not plan.groups:
        if not state.report:
            state.report.append(nothing_row(state.iteration, "NOTHING_TO_DO", plan.version, "; ".join(plan.notes)))
        return None
    if _same_again(plan, state):
        note = f"{plan.groups[0].strategy} chose the files that it has just written"
        state.report.append(nothing_row(state.iteration, "NO_PROGRESS", plan.version, note))
        return None
    return None if settings.dry_run else plan


def _rewrite_groups(
    table: ManagedTable, plan: Plan, run: Run, context: RewriteContext, state: _State, progress: Progress
) -> None:
    """Rewrites the groups of a plan; counts each outcome once."""
    run.current = "; ".join(group.note for group in plan.groups)
    logger.info("%s: run %s, iteration %d, %s", table.name, run.run_id, state.iteration, run.current)
    progress.planned(sum(group.bytes for group in plan.groups), run.current)

    def work(group: FileGroup) -> RewriteResult:
        # Events are kept from here: the caller's thread may be interrupted, and then writes no file any more.
        begun = lease.now_millis()
        try:
            result = rewrite(table, group, context)
            record(table, result.event, result.version)
            return result
        except BaseException as error:
            _record_failure(table, run, group, begun, known_error(error))
            raise
        finally:
            progress.done(group.bytes)

    outcomes = run_groups(table.spark, run, plan.groups, work)
    failure: BaseException | None = None
    committed = [outcome.result for outcome in outcomes if outcome.result is not None]
    for outcome in outcomes:
        if outcome.result is not None:
            _count_commit(run, state, outcome, outcome.result)
        elif outcome.error is not None:
            error = known_error(outcome.error)
            state.report.append(failed_row(state.iteration, outcome.group, outcome.milliseconds, error))
            # The next plan makes a lost race good.
            failure = failure if isinstance(error, ConcurrentChangeError) else outcome.error
    state.conflicts = 0 if committed else state.conflicts + 1
    # Half as many files are read for half as long: among busy writers, smaller batches get through.
    state.batch_bytes = None if committed else max(1, min(group.bytes for group in plan.groups) // 2)
    state.last_written = plan.groups[0].strategy, frozenset(path for result in committed for path in result.paths)
    if isinstance(failure, UseError):
        failure.message += f" {run.committed} groups were committed before." if run.committed else ""
    if failure is not None:
        raise failure


def _count_commit(run: Run, state: _State, outcome: GroupOutcome, result: RewriteResult) -> None:
    run.committed += 1
    run.committed_bytes += outcome.group.bytes
    state.report.append(committed_row(state.iteration, outcome.group, outcome.milliseconds, result))


def _record_failure(table: ManagedTable, run: Run, group: FileGroup, begun: int, error: UseError) -> None:
    inputs = FilesTotals.of([FileFacts(f.path, f.size, f.rows, (), (), f.level) for f in group.files])
    times = begun, lease.now_millis()
    write_id = error.write_id if isinstance(error, CommitUnknownError) else None
    event = event_without_commit(
        group.strategy, run.trigger, group.reason, run.parameters, times, inputs, write_id=write_id
    )
    record_failure(table, event, error)


def _interrupted(run: Run) -> tuple[str, str]:
    run.request_stop("INTERRUPTED", "interrupted")
    return _asked_to_stop(*(run.stop_reason or ("INTERRUPTED", "interrupted")))


def _asked_to_stop(code: str, message: str) -> tuple[str, str]:
    return code, f"{message}; the groups above are committed, more may remain"


def _stopped_row(state: _State, code: str, message: str) -> ReportRow:
    return nothing_row(state.iteration, code, None, message)


def _held_row(held: lease.Lease) -> ReportRow:
    seconds = max(held.expires_at - lease.now_millis(), 0) // 1000
    note = f"{held.holder} optimizes the table in run {held.run_id} ({held.trigger}); its lease ends in {seconds} s"
    return nothing_row(0, "LEASE_HELD", None, note)


def _same_again(plan: Plan, state: _State) -> bool:
    """Whether a strategy chooses what it has just written and nothing else: it would go on for ever."""
    strategy, written = state.last_written
    chosen = {file.path for group in plan.groups for file in group.files}
    return plan.groups[0].strategy == strategy and chosen == written


def _most_groups(settings: OptimizeSettings, run: Run) -> int:
    left = settings.parallelism if settings.max_iterations is None else settings.max_iterations - run.committed
    return max(1, min(settings.parallelism, left))


def _stop_reason(table: ManagedTable, settings: OptimizeSettings, run: Run) -> tuple[str, str] | None:
    """Why no further group begins, as code and text."""
    if interrupted(table.spark):
        return _interrupted(run)
    if run.stop_reason is not None:
        return _asked_to_stop(*run.stop_reason)
    if settings.max_iterations is not None and run.committed >= settings.max_iterations:
        return "LIMIT_REACHED", f"max_iterations = {settings.max_iterations} was reached; more may remain"
    if settings.max_bytes is not None and run.committed_bytes >= settings.max_bytes:
        note = f"max_bytes = {settings.max_bytes} was reached after {run.committed_bytes} bytes; more may remain"
        return "LIMIT_REACHED", note
    seconds = (lease.now_millis() - run.started_at) / 1000
    if settings.max_seconds is not None and seconds >= settings.max_seconds:
        return "LIMIT_REACHED", f"max_duration = {settings.max_seconds:g} seconds was reached; more may remain"
    return None
