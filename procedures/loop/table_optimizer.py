"""Optimizes a managed table: makes plans out of what the strategies choose, and runs the loop over them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from catalog.clock import Clock
from catalog.errors import CommitUnknownError, IndexConfigurationError, UnknownNameError, UseError
from catalog.history import event_store
from catalog.history.events import FileFacts, FilesTotals, event_without_commit
from catalog.jvm.session import described_jobs, interrupted
from catalog.properties.checks import described
from catalog.state import lease
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.runs import Run
from procedures.groups.plan import Arrivals, FileGroup, Plan, SkippedGroup
from procedures.layout.step import StepObserver, ignore_step
from procedures.loop.group_runs import SparkThreads
from procedures.loop.interfaces import OptimizerParts, PlanRequest
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.optimizer import Limits, Optimizer
from procedures.loop.progress import Progress
from procedures.loop.report import ReportRow
from procedures.loop.run_selection import RunSelection
from procedures.loop.stored_plan_run import StoredPlanRun
from procedures.process.application import Application, application
from procedures.rewrite.group_rewrite import rewrite
from procedures.rewrite.results import RewriteContext, RewriteResult
from procedures.selection.revision_rewrite import former_index_note
from procedures.selection.unindexed_files import NAME as UNINDEXED_FILES


def make_plan(
    table: ManagedTable,
    settings: OptimizeSettings,
    most: int = 1,
    most_bytes: int | None = None,
    selection_of_run: RunSelection | None = None,
    arrivals: Arrivals | None = None,
) -> Plan:
    """Asks the strategies in order, and takes groups of the first that finds any; reads metadata only.

    Args:
        table: the table.
        settings: what to look for.
        most: groups wanted at most.
        most_bytes: once the groups have so many bytes, no further one is wanted; None = no limit.
        selection_of_run: the selectors of the run; new ones when left out.
        arrivals: which unindexed files are left to the next run; none when left out.

    Raises:
        IndexConfigurationError: a strategy needs index columns and the table has none.
        UnknownNameError: the table has no revision of the number that is asked for.
    """
    snapshot = table.snapshot()
    _check_index(table, snapshot, settings)
    _check_revisions(snapshot, settings)
    # Beside the first indexing, another group would make a revision of its own.
    if snapshot.latest_revision is None and any(strategy.needs_index_columns for strategy in settings.strategies):
        most = 1
    skipped: list[SkippedGroup] = []
    notes: list[str] = []
    arrived: SkippedGroup | None = None
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
                if arrivals is not None and selection.group.strategy == UNINDEXED_FILES:
                    arrived = arrivals.left(selection.group)
                    if arrived is not None:
                        break
                groups.append(selection.group)
                if most_bytes is not None and sum(group.bytes for group in groups) >= most_bytes:
                    break
                rest = rest.without([f.path for f in selection.group.files])
            if groups:
                return Plan(
                    snapshot.version, tuple(groups), tuple(skipped), (), warnings, arrived, snapshot.committed_at
                )
        former = former_index_note(snapshot)
        notes += [former] if former else []
    return Plan(snapshot.version, (), tuple(skipped), tuple(notes), warnings, arrived, snapshot.committed_at)


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
    for number in {asked.revision_id for asked in settings.selection.values() if asked.revision_id}:
        if number not in known:
            raise UnknownNameError.of("revision", str(number), [str(n) for n in known])


@dataclass(frozen=True)
class TablePlanner:
    """Plans with the strategies of a call; see ``parts.Planner``."""

    table: ManagedTable
    settings: OptimizeSettings
    selection: RunSelection

    @classmethod
    def of(cls, table: ManagedTable, settings: OptimizeSettings) -> TablePlanner:
        """The planner of one run, which begins the selectors of its strategies."""
        return cls(table, settings, RunSelection(settings))

    def plan(self, request: PlanRequest) -> Plan:
        """See ``make_plan``."""
        self.selection.limit_batches(request.batch_bytes)
        most = request.most_groups, request.most_bytes
        return make_plan(self.table, self.settings, *most, self.selection, request.arrivals)


@dataclass(frozen=True)
class TableLease:
    """The lease below the table's folder; see ``parts.RunLease``."""

    table: ManagedTable
    run: Run
    clock: Clock
    plan: str | None = None

    def holder(self) -> lease.Lease | None:
        """See ``RunLease.holder``."""
        return lease.conflicting_lease(self.table, None, self.clock.now(), self.plan)

    def acquire(self) -> lease.Acquired | lease.HeldBy:
        """See ``RunLease.acquire``."""
        return lease.acquire(self.table, self.run.run_id, self.run.trigger, self.clock.now(), self.plan)

    def renewed(self) -> AbstractContextManager[None]:
        """See ``RunLease.renewed``."""
        return lease.renewed(self.table, self.run.run_id, self.run.trigger, self.clock, self.plan)


@dataclass(frozen=True)
class TableEvents:
    """The events below the table's folder; see ``parts.EventRecorder``."""

    table: ManagedTable
    run: Run
    clock: Clock

    def reconcile(self) -> None:
        """See ``EventRecorder.reconcile``."""
        event_store.reconcile(self.table)

    def committed(self, result: RewriteResult) -> None:
        """See ``EventRecorder.committed``."""
        event_store.record(self.table, result.event, result.version, self.clock)

    def failed(self, group: FileGroup, started_at: int, error: UseError) -> None:
        """See ``EventRecorder.failed``."""
        inputs = FilesTotals.of([FileFacts(f.path, f.size, f.rows, (), (), f.level) for f in group.files])
        times = started_at, self.clock.now()
        write_id = error.write_id if isinstance(error, CommitUnknownError) else None
        event = event_without_commit(
            group.strategy, self.run.trigger, group.reason, self.run.parameters, times, inputs, write_id=write_id
        )
        event_store.record_failure(self.table, event, error, self.clock)


def optimizer_of(
    table: ManagedTable,
    settings: OptimizeSettings,
    run: Run,
    observe: StepObserver = ignore_step,
    app: Application | None = None,
    stored_plan: StoredPlanRun | None = None,
) -> Optimizer:
    """The optimizer of a table, in the caller's session.

    Args:
        table: the table.
        settings: what to do.
        run: the run's identity, and the way to stop it.
        observe: sees the steps of each rewrite.
        app: whose runs and clock it uses; the application of the process when left out.
        stored_plan: the plan that is executed; strategies choose the groups when left out.
    """
    spark = table.spark
    app = app or application()
    clock = app.clock
    context = RewriteContext(run.trigger, run.parameters, observe, clock)
    rewrite_group = partial(rewrite, table) if stored_plan is None else stored_plan.rewrite
    parts = OptimizerParts(
        table=table.name,
        planner=TablePlanner.of(table, settings) if stored_plan is None else stored_plan,
        check_writable=table.check_writable,
        rewrite=lambda group: rewrite_group(group, context),
        threads=SparkThreads(spark, run),
        lease=TableLease(table, run, clock, settings.plan),
        events=TableEvents(table, run, clock),
        progress=lambda: Progress(spark, f"optimize {table.name}"),
        interrupted=partial(interrupted, spark),
        runs=app.runs,
        clock=clock,
    )
    limits = Limits(settings.max_iterations, settings.max_bytes, settings.max_seconds, settings.parallelism)
    return Optimizer(parts, run, limits, settings.dry_run)


def optimize(
    table: ManagedTable,
    settings: OptimizeSettings,
    run: Run,
    observe: StepObserver = ignore_step,
    app: Application | None = None,
) -> list[ReportRow]:
    """Optimizes a table; see ``Optimizer.optimize`` and, for the parameters, ``optimizer_of``."""
    if settings.plan is None:
        return optimizer_of(table, settings, run, observe, app).optimize()
    stored_plan = StoredPlanRun.of(table, settings, run, (app or application()).clock)
    with stored_plan.claims.renewed():
        return optimizer_of(table, settings, run, observe, app, stored_plan).optimize()
