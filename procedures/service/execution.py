"""The engine of the service: runs of schedules, and the measurements that decide whether to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from pyspark import SparkContext
from pyspark.sql import SparkSession

from catalog.errors import ConcurrentChangeError
from catalog.files.log_changes import commits_since
from catalog.history.events import OPERATION
from catalog.insights.consumption import newest_record, trim_scans
from catalog.insights.ingestion import record_commits
from catalog.jvm.log_probe import qualified
from catalog.jvm.session import TIME_ZONE_KEY, activate, described_jobs, is_stopped
from catalog.jvm.shared_texts import SharedTexts
from catalog.jvm.task_queue import cores, tasks_queued_outside
from catalog.properties.alert_properties import SCORE
from catalog.properties.insight_properties import InsightsPolicy
from catalog.properties.lifecycle_properties import COMPACTION_DELETED_RATIO
from catalog.properties.optimization_properties import QUIET_PERIOD
from catalog.properties.retention_properties import RetentionPolicy, check_retention
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.settings.session_settings import PROGRESS
from catalog.state.fleet_ledger import LEDGER_FOLDER, FleetLedger
from catalog.state.suspension import is_suspended
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.runs import Run
from procedures.fleet.appraisal import Appraisal, appraise, record_outcome
from procedures.fleet.budget import RunBudget
from procedures.fleet.offer import Offer
from procedures.groups.plan import ARRIVED, CHANGED
from procedures.insight.health.health import health_of
from procedures.insight.health.score import score_of
from procedures.lifecycle.log.consolidation import LogRequest, consolidate_log
from procedures.lifecycle.log.modes import DEFAULT_MODES, MODES
from procedures.lifecycle.purge.reclamation import Reclamation, ReclamationSettings
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.report import COMMITTED, FAILED, LEASE_HELD, SKIPPED, OptimizeRow, passed_over
from procedures.loop.table_optimizer import optimize
from procedures.process.application import Application
from procedures.service.column_choice import look_at_columns
from procedures.service.health_alerts import look
from procedures.service.schedule import (
    COLUMN_CHOICE,
    HEALTH_CHECK,
    INSIGHTS,
    LOG_CONSOLIDATION,
    RECLAMATION,
    Schedule,
    schedule_of,
)
from procedures.service.service_metrics import RunTotals

# Reasons without a strategy on which an owner can act.
_NOTED_REASONS = (LEASE_HELD, "NO_PROGRESS", CHANGED)
_MAX_NOTES = 5
_LEFT_FILES = (ARRIVED, CHANGED)


@dataclass(frozen=True)
class Files:
    """Measures of a table's files for triggers; sizes in bytes. Small files are below half the target file size."""

    bytes: int
    unindexed_bytes: int
    small_files: int


@dataclass(frozen=True)
class TaskQueue:
    """The tasks of other pools that wait for a core, and the number of cores of the application."""

    tasks: int
    cores: int


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run that did not fail.

    Attributes:
        settled: version at which nothing was left to do; None if there may be more to do.
        note: the files that the run skipped and why, for display; '' if there are none.
        totals: of its groups, for metrics.
        leaves_files: whether it has done everything apart from files that it leaves to the next run.
    """

    settled: int | None
    note: str = ""
    totals: RunTotals = field(default_factory=RunTotals)
    leaves_files: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing ended the run early."""
        return self.settled is not None or self.leaves_files


@dataclass(frozen=True)
class Turn:
    """What one run may rewrite.

    Attributes:
        budget: what the budgets of the fleet allow.
        appraisal: by which the table was ranked; the run rewrites what it offered. None = there was no need to rank.
    """

    budget: RunBudget
    appraisal: Appraisal | None = None

    @property
    def offer(self) -> Offer | None:
        """What it was ranked by."""
        return None if self.appraisal is None else self.appraisal.offer

    def is_affordable(self) -> bool:
        """Whether the run may begin: what an owner asks for is compared only if its bytes would be allowed."""
        offer = self.offer
        return offer is None or not offer.is_asked or self.budget.has_room(offer.cost)

    def settings(self, schedule: Schedule) -> OptimizeSettings:
        """The settings of the run."""
        offer = self.offer
        return schedule.settings().within(self.budget.group_bytes, None if offer is None else max(offer.cost, 1))


class Engine(Protocol):
    """All operations that access a table or the cluster."""

    def prepare(self, pool: str) -> None:
        """Prepares the calling thread for the other methods."""
        ...

    def run(self, run: Run, schedule: Schedule, pool: str, turn: Turn) -> RunOutcome:
        """Optimizes the table."""
        ...

    def appraise(self, run: Run, schedule: Schedule, pool: str, group_bytes: int | None) -> Appraisal:
        """Judges what a run would rewrite.

        Args:
            run: names the plan.
            schedule: has the strategies.
            pool: scheduler pool of the jobs.
            group_bytes: bytes of a group at most; None = unlimited.
        """
        ...

    def read_since(self, location: str, since: int) -> bool:
        """Whether a scan of the table was recorded after a time, epoch milliseconds."""
        ...

    def ledger(self, folder: str | None) -> FleetLedger:
        """Returns the ledger of budgets; see ``ledger_of``."""
        ...

    def maintain(self, run: Run, schedule: Schedule, name: str, pool: str) -> bool:
        """Does one kind of maintenance; returns whether it is done: a request to stop may have ended it.

        Args:
            run: the run.
            schedule: has the policies.
            name: one of ``schedule.maintenance``.
            pool: scheduler pool of the jobs.
        """
        ...

    def suspended(self, location: str) -> bool:
        """Whether the table is suspended."""
        ...

    def commits(self, location: str, after: int, newest: int, most: int) -> int:
        """Counts the commits of others since the last optimization; see ``commits_since``.

        If there are fewer than ``most`` commits, their number is returned, whoever made them.
        """
        ...

    def files(self, table: str) -> Files:
        """Measures the files of a table."""
        ...

    def queue(self, pool: str) -> TaskQueue:
        """Counts the tasks of pools other than ``pool`` that wait for a core."""
        ...


def check_properties(schedule: Schedule, snapshot: TableSnapshot) -> None:
    """Refuses to remove anything by properties that the table has no longer, as after it was made anew.

    Raises:
        ConcurrentChangeError: the properties are others than those that the schedule comes from.
    """
    if not schedule.removes:
        return
    newest = schedule_of(snapshot.settings)
    if not isinstance(newest, Schedule) or newest.parameters != schedule.parameters:
        raise ConcurrentChangeError(
            "The properties of the table were changed; the run ends, and the next one follows them."
        )


def find_at(spark: SparkSession, name: str, location: str) -> ManagedTable:
    """Finds a table of which the location is known.

    Args:
        spark: session that finds the table.
        name: full name.
        location: its root, as listings of tables have it.

    Raises:
        ConcurrentChangeError: another table has its name now.
    """
    table = ManagedTable.find(spark, name)
    if qualified(spark, table.location) != location:
        raise ConcurrentChangeError(f"{name} is another table now; the run ends.")
    return table


class SparkEngine:
    """The engine of a service, which works in the session of the service.

    Args:
        spark: the session.
        app: lists the runs.
    """

    def __init__(self, spark: SparkSession, app: Application) -> None:
        self._spark = spark
        self._app = app
        self._ledgers: dict[str | None, FleetLedger] = {}

    def prepare(self, pool: str) -> None:
        """See ``Engine.prepare``."""
        prepare_thread(self._spark, pool)

    def run(self, run: Run, schedule: Schedule, pool: str, turn: Turn) -> RunOutcome:
        """See ``Engine.run``; must be called in a separate thread."""
        prepare_thread(self._spark, pool)
        table = find_at(self._spark, run.table, run.location)
        check = partial(check_properties, schedule)
        try:
            rows = optimize(table, turn.settings(schedule), run, app=self._app, spend=turn.budget.spend, check=check)
        finally:
            if turn.appraisal is not None:
                record_outcome(table, turn.appraisal, run.committed_bytes, self._app.clock.now())
        settled = settled_version(rows, run)
        leaves_files = settled is None and is_complete(rows, run)
        return RunOutcome(settled, note_of(rows), totals_of(rows), leaves_files)

    def appraise(self, run: Run, schedule: Schedule, pool: str, group_bytes: int | None) -> Appraisal:
        """See ``Engine.appraise``; must be called in a separate thread."""
        prepare_thread(self._spark, pool)
        settings = schedule.settings().within(group_bytes)
        return appraise(find_at(self._spark, run.table, run.location), settings, run, self._app.clock)

    def read_since(self, location: str, since: int) -> bool:
        """See ``Engine.read_since``; lists a folder and reads no table."""
        return (newest_record(self._spark, location) or 0) > since

    def ledger(self, folder: str | None) -> FleetLedger:
        """See ``Engine.ledger``."""
        if folder not in self._ledgers:
            self._ledgers[folder] = ledger_of(self._spark, folder)
        return self._ledgers[folder]

    def maintain(self, run: Run, schedule: Schedule, name: str, pool: str) -> bool:
        """See ``Engine.maintain``; must be called in a separate thread.

        Raises:
            RetentionError: another engine has set a retention below that of Delta.
        """
        prepare_thread(self._spark, pool)
        table = find_at(self._spark, run.table, run.location)
        if name == INSIGHTS and schedule.insights is not None:
            self._keep_insights(table, schedule.insights)
        if name == RECLAMATION and schedule.retention is not None:
            return self._reclaim(table, run, schedule, schedule.retention)
        if name == LOG_CONSOLIDATION:
            modes = tuple(mode for mode in MODES if mode.name in DEFAULT_MODES)
            consolidate_log(table, LogRequest(modes, trigger=run.trigger, measures=False))
        if name == HEALTH_CHECK and schedule.alerts is not None:
            parts = health_of(table, self._app.clock)
            values = {SCORE: float(score_of(parts)), **{part.name: part.value for part in parts}}
            look(table, schedule.alerts, values, self._app.clock.now(), self._app.notifications)
        if name == COLUMN_CHOICE and schedule.column_choice is not None:
            look_at_columns(table, schedule.column_choice, self._app.clock.now())
        return True

    def _keep_insights(self, table: ManagedTable, insights: InsightsPolicy) -> None:
        now = self._app.clock.now()
        if insights.keep_commits_millis is not None:
            record_commits(table, insights.keep_commits_millis, now)
        if insights.scans is not None:
            trim_scans(table, insights.scans, now)

    def _reclaim(self, table: ManagedTable, run: Run, schedule: Schedule, retention: RetentionPolicy) -> bool:
        snapshot = table.snapshot()
        check_properties(schedule, snapshot)
        floor, now = snapshot.retention_hours, self._app.clock.now()
        check_retention(snapshot.settings)
        ratio = COMPACTION_DELETED_RATIO.optional_value(snapshot.settings)
        hours = floor if retention.hours is None else max(retention.hours, floor)
        settings = ReclamationSettings(
            Cutoff.of_retention(hours, now, floor),
            ratio or 0.0,
            whole=retention.hours is not None,
            quiet_millis=int(QUIET_PERIOD.value(snapshot.settings)),
        )
        Reclamation(table, settings, run.trigger, retention.asked, part_of=run).run()
        return run.stop_reason is None

    def suspended(self, location: str) -> bool:
        """See ``Engine.suspended``."""
        return is_suspended(self._spark, location)

    def commits(self, location: str, after: int, newest: int, most: int) -> int:
        """See ``Engine.commits``."""
        if newest - after < most:
            # They are too few, whoever made them.
            return newest - after
        return commits_since(self._spark, location, OPERATION, after, newest, most)

    def files(self, table: str) -> Files:
        """See ``Engine.files``; one Spark job, none for a version that was read before."""
        snapshot = ManagedTable.find(self._spark, table).snapshot()
        small = TARGET_FILE_BYTES.value(snapshot.settings) // 2
        with described_jobs(self._spark, f"USE service: measuring {table}"):
            columns = snapshot.file_table
        sizes = columns.size
        unindexed_bytes = int(sizes[columns.revision == 0].sum())
        return Files(int(sizes.sum()), unindexed_bytes, int((sizes < small).sum()))

    def queue(self, pool: str) -> TaskQueue:
        """See ``Engine.queue``; starts no Spark job."""
        return TaskQueue(tasks_queued_outside(self._spark, pool), cores(self._spark))


def ledger_of(spark: SparkSession, folder: str | None) -> FleetLedger:
    """Returns the ledger of the budgets of a metastore's databases; it is made when something is spent.

    Args:
        spark: session whose metastore counts.
        folder: where it is, see ``FLEET_LOCATION``; None = below the location of the database ``default``.
    """
    texts = SharedTexts.of_metastore(spark, LEDGER_FOLDER) if folder is None else SharedTexts(spark, folder)
    return FleetLedger(texts)


def background_session(spark: SparkSession) -> SparkSession:
    """Creates a session of the application for work in the background.

    It draws progress bars only if they are turned on explicitly, and has the time zone of the given session.
    """
    session = spark.newSession()
    session.conf.set(TIME_ZONE_KEY, str(spark.conf.get(TIME_ZONE_KEY)))
    is_shown = PROGRESS.of_conf_or_default(spark.conf.get) == "true"
    session.conf.set(PROGRESS.name, "true" if is_shown else "false")
    return session


def prepare_thread(spark: SparkSession, pool: str) -> None:
    """Sets the session and the scheduler pool of the calling thread and of the threads that it starts."""
    activate(spark)
    # Queries have priority: see the weights of the pools.
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def is_complete(rows: Sequence[OptimizeRow], run: Run) -> bool:
    """Whether a run has done what it found; it may leave files to the next one.

    Args:
        rows: the report of the run.
        run: the run.
    """
    ends = [row for row in rows if row.reason not in _LEFT_FILES]
    if run.stop_reason is not None or not rows or (ends and ends[-1].state == FAILED):
        return False
    # A row without a version says what ended the run: a limit, a lease, a budget, a request to stop.
    return not any(row.state == SKIPPED and row.version is None for row in rows)


def settled_version(rows: Sequence[OptimizeRow], run: Run) -> int | None:
    """Returns the version at which a run found nothing more to do; None if it ended for another reason."""
    if not is_complete(rows, run) or any(row.reason in _LEFT_FILES for row in rows):
        return None
    return max((row.version for row in rows if row.version is not None), default=None)


def note_of(rows: Sequence[OptimizeRow]) -> str:
    """Returns a note about the files that a run skipped and why, for the status of its table.

    The note does not say that a run found nothing to do or was stopped, because the state of the table shows this.

    Args:
        rows: the report of the run.
    """
    noted = [skip for skip in passed_over(rows) if skip.strategy is not None or skip.reason in _NOTED_REASONS]
    texts = [skip.text for skip in noted[:_MAX_NOTES]]
    return "; ".join([*texts, f"and {len(noted) - _MAX_NOTES} more reasons"] if len(noted) > _MAX_NOTES else texts)


def totals_of(rows: Sequence[OptimizeRow]) -> RunTotals:
    """Returns the totals of a run's groups.

    Args:
        rows: the report of the run.
    """
    committed = [row for row in rows if row.state == COMMITTED]
    return RunTotals(
        sum(row.input_bytes for row in committed),
        sum(row.output_bytes for row in committed),
        sum(row.state == FAILED for row in rows),
        any(row.reason == LEASE_HELD for row in rows),
        bool(rows) and rows[-1].state == FAILED,
        sum(row.input_files for row in committed),
        sum(row.output_files for row in committed),
        tuple(dict.fromkeys(f"{row.reason} ({row.strategy})" for row in committed)),
        tuple(dict.fromkeys(row.reason for row in rows if row.state == FAILED)),
    )


def is_running(spark: SparkSession) -> bool:
    """Whether the session's SparkContext is the running one and is not being stopped."""
    context = spark.sparkContext
    return SparkContext._active_spark_context is context and not is_stopped(context)
