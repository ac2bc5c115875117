"""Optimizes a managed table: gives the loop what it needs of the table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from catalog.clock import Clock
from catalog.errors import CommitUnknownError, UseError
from catalog.history import event_store
from catalog.history.events import FileFacts, FilesTotals, event_without_commit
from catalog.jvm.session import interrupted
from catalog.state import lease
from catalog.table.managed_table import ManagedTable
from procedures.declare.runs import CANCELLED, Run, Stop
from procedures.groups.group import Group
from procedures.layout.step import StepObserver, ignore_step
from procedures.loop.group_runs import SparkThreads
from procedures.loop.interfaces import OptimizerParts
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.optimizer import Limits, Optimizer
from procedures.loop.planner import SnapshotCheck, TablePlanner, any_snapshot
from procedures.loop.progress import Progress
from procedures.loop.quiet_period import QuietPeriod
from procedures.loop.report import OptimizeRow
from procedures.loop.stored_plan_run import StoredPlanRun
from procedures.process.application import Application, application
from procedures.rewrite.group_rewrite import rewrite
from procedures.rewrite.results import RewriteContext, RewriteResult


@dataclass(frozen=True)
class TableLease:
    """The lease below the table's folder; see ``interfaces.RunLease``."""

    table: ManagedTable
    run: Run
    clock: Clock
    plan: str | None = None
    application: str | None = None

    def holder(self) -> lease.Lease | None:
        """See ``RunLease.holder``."""
        return lease.conflicting_lease(self.table, None, self.clock.now(), self.plan)

    def acquire(self) -> lease.Acquired | lease.HeldBy:
        """See ``RunLease.acquire``."""
        run = self.run
        return lease.acquire(self.table, run.run_id, run.trigger, self.clock.now(), self.plan, self._leased_run())

    def renewed(self) -> AbstractContextManager[None]:
        """See ``RunLease.renewed``."""
        run = self.run
        return lease.renewed(self.table, run.run_id, run.trigger, self.clock, self.plan, self._leased_run())

    def _leased_run(self) -> lease.LeasedRun:
        run = self.run
        return lease.LeasedRun(
            self.application,
            lambda: (run.current, run.committed, run.committed_bytes),
            lambda by: run.request_stop(CANCELLED, f"run {run.run_id} was cancelled by {by}"),
        )


@dataclass(frozen=True)
class TableEvents:
    """The events below the table's folder; see ``interfaces.EventRecorder``."""

    table: ManagedTable
    run: Run
    clock: Clock

    def reconcile(self) -> None:
        """See ``EventRecorder.reconcile``."""
        event_store.reconcile(self.table)

    def committed(self, result: RewriteResult) -> None:
        """See ``EventRecorder.committed``."""
        event_store.record(self.table, result.event, result.version, self.clock)

    def failed(self, group: Group, started_at: int, error: UseError) -> None:
        """See ``EventRecorder.failed``."""
        inputs = FilesTotals.of([FileFacts(f.path, f.size, f.rows, (), (), f.level) for f in group.files])
        times = started_at, self.clock.now()
        write_id = error.write_id if isinstance(error, CommitUnknownError) else None
        event = event_without_commit(
            group.strategy, self.run.trigger, group.reason, self.run.parameters, times, inputs, write_id=write_id
        )
        event_store.record_failure(self.table, event, error, self.clock)


def planner_of(
    table: ManagedTable, settings: OptimizeSettings, run: Run, clock: Clock, check: SnapshotCheck = any_snapshot
) -> TablePlanner:
    """The planner of a run by the strategies of its settings.

    Args:
        table: the table.
        settings: what to do.
        run: the run.
        clock: the time.
        check: see ``TablePlanner``.
    """
    quiet = QuietPeriod(table, settings.quiet_millis, run, clock) if settings.quiet_millis else None
    return TablePlanner(table, settings, quiet, check)


def optimizer_of(
    table: ManagedTable,
    settings: OptimizeSettings,
    run: Run,
    observe: StepObserver = ignore_step,
    app: Application | None = None,
    stored_plan: StoredPlanRun | None = None,
    spend: Callable[[int], Stop | None] | None = None,
    check: SnapshotCheck = any_snapshot,
) -> Optimizer:
    """The optimizer of a table, in the caller's session.

    Args:
        table: the table.
        settings: what to do.
        run: the run's identity, and the way to stop it.
        observe: sees the steps of each rewrite.
        app: whose runs and clock it uses; the application of the process when left out.
        stored_plan: the plan that is executed; strategies choose the groups when left out.
        spend: see ``OptimizerParts``.
        check: see ``TablePlanner``; not called for a stored plan, which names its table and its files.
    """
    spark = table.spark
    app = app or application()
    clock = app.clock
    context = RewriteContext(run.trigger, run.parameters, observe, clock)
    planner = planner_of(table, settings, run, clock, check)
    quiet = planner.quiet
    rewrite_group = partial(rewrite, table) if stored_plan is None else stored_plan.rewrite
    parts = OptimizerParts(
        table=table.name,
        planner=planner if stored_plan is None else stored_plan,
        check_writable=table.check_writable,
        rewrite=lambda group: rewrite_group(group, context if quiet is None else quiet.guarded(group, context)),
        threads=SparkThreads(spark, run),
        lease=TableLease(table, run, clock, settings.plan, spark.sparkContext.applicationId),
        events=TableEvents(table, run, clock),
        progress=lambda: Progress(spark, f"optimize {table.name}"),
        interrupted=partial(interrupted, spark),
        runs=app.runs,
        clock=clock,
        spend=spend,
    )
    limits = Limits(settings.max_iterations, settings.max_bytes, settings.max_seconds, settings.parallelism)
    return Optimizer(parts, run, limits, settings.dry_run)


def optimize(
    table: ManagedTable,
    settings: OptimizeSettings,
    run: Run,
    observe: StepObserver = ignore_step,
    app: Application | None = None,
    spend: Callable[[int], Stop | None] | None = None,
    check: SnapshotCheck = any_snapshot,
) -> list[OptimizeRow]:
    """Optimizes a table; see ``Optimizer.optimize`` and, for the parameters, ``optimizer_of``."""
    if settings.plan is None:
        return optimizer_of(table, settings, run, observe, app, spend=spend, check=check).optimize()
    stored_plan = StoredPlanRun.of(table, settings, run, (app or application()).clock)
    if not settings.dry_run:
        # Claims of groups are files below the table.
        table.check_rights()
    with stored_plan.claims.renewed():
        return optimizer_of(table, settings, run, observe, app, stored_plan).optimize()
