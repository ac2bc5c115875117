"""What the page of one table shows, gathered from its metadata when somebody asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.columns.column_names import logical_name
from catalog.epoch_millis import moment
from catalog.files.file_table import UNKNOWN, Floats
from catalog.history.event_store import optimizations
from catalog.history.events import FAILED, IGNORED
from catalog.jvm.metastore import database_of
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.calls.status import status
from procedures.declare.declaration import Call
from procedures.declare.result_rows import HealthRow, OptimizeRow, StatusRow
from procedures.declare.runs import CALL, Run
from procedures.declare.signature import DETAILS
from procedures.fleet.budget import RunBudget
from procedures.insight.health.diagnosis import health_rows
from procedures.insight.health.health import diagnosis_of
from procedures.insight.health.remedy import AdviceStep
from procedures.insight.report.facts import CubeBox, cube_boxes
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.table_optimizer import optimize
from procedures.process.application import Application
from procedures.service.execution import ledger_of, prepare_thread
from procedures.service.schedule import InvalidSchedule, Schedule, schedule_of
from procedures.service.service_settings import ServiceSettings
from sql_ext.dashboard.layout_picture import MOST_CUBES

_MOST_EVENTS, _MOST_ERRORS = 30, 5
_EVENTS_READ = 200


@dataclass(frozen=True)
class EventLine:
    """An optimization or vacuum of the table; names and units as in ``<table>.optimizations``."""

    started_at: Any
    kind: str
    trigger: str | None
    strategy: str
    state: str
    reason: str | None
    files_in: int
    files_out: int
    bytes_in: int
    bytes_out: int
    version: int | None
    error: str | None


@dataclass(frozen=True, eq=False)
class Layout:
    """The layout of a version.

    Attributes:
        columns: logical names of the indexed columns; empty without an index.
        shown_columns: the one or two columns of the cubes.
        cubes: cubes of the newest revision, at most ``MOST_CUBES``.
        all_cubes: how many there are.
        sizes: bytes of each file.
        is_indexed: whether each file is indexed.
    """

    columns: tuple[str, ...]
    shown_columns: tuple[str, ...]
    cubes: tuple[CubeBox, ...]
    all_cubes: int
    sizes: Floats
    is_indexed: Sequence[bool]


@dataclass(frozen=True, eq=False)
class TableData:
    """A table at one moment.

    Attributes:
        name: full name.
        gathered_at: epoch milliseconds.
        version: newest version.
        rows: live rows; None if the log does not record them.
        files: live files.
        bytes: their bytes.
        status: its row of ``use.status``, or that of its first run.
        health: rows of ``use.health``.
        steps: the advised steps, in order.
        layout: its layout.
        events: the newest optimizations, the newest first.
        errors: the newest failures, the newest first.
        plan: rows of a dry run; None if nobody asked for it.
    """

    name: str
    gathered_at: int
    version: int
    rows: int | None
    files: int
    bytes: int
    status: StatusRow
    health: tuple[HealthRow, ...]
    steps: tuple[AdviceStep, ...]
    layout: Layout
    events: tuple[EventLine, ...]
    errors: tuple[EventLine, ...]
    plan: tuple[OptimizeRow, ...] | None = None


class SparkTableSource:
    """Gathers the data of tables in a session.

    Args:
        spark: the session.
        app: the state of the process.
    """

    def __init__(self, spark: SparkSession, app: Application) -> None:
        self._spark = spark
        self._app = app
        self._settings = ServiceSettings.of(spark.conf.get)

    def gather(self, name: str, with_plan: bool, group: str) -> TableData:
        """Gathers the data of a table in the calling thread; reads metadata only.

        Args:
            name: name or path of the table.
            with_plan: whether to plan its next run.
            group: group of the Spark jobs, for ``cancel``.

        Raises:
            UseError: the table cannot be read or planned.
        """
        spark, clock = self._spark, self._app.clock
        prepare_thread(spark, self._settings.pool)
        spark.sparkContext.setJobGroup(group, f"USE dashboard: {name}")
        table = ManagedTable.find(spark, name)
        snapshot = table.snapshot()
        files = snapshot.file_table
        newest = snapshot.latest_revision
        names = () if newest is None else tuple(logical_name(snapshot.schema, column) for column in newest.columns)
        axes = tuple(range(min(len(names), 2)))
        cubes = () if newest is None else cube_boxes(snapshot, newest, axes)
        diagnosis = diagnosis_of(table, clock)
        events = _events(table)
        return TableData(
            name=table.name,
            gathered_at=clock.now(),
            version=snapshot.version,
            rows=None if (files.rows == UNKNOWN).any() else int(files.rows.sum()),
            files=len(files),
            bytes=int(files.size.sum()),
            status=status(Call(spark, {DETAILS: False}), name)[0],
            health=tuple(health_rows(diagnosis)),
            steps=diagnosis.steps,
            layout=Layout(
                columns=names,
                shown_columns=tuple(names[axis] for axis in axes),
                cubes=cubes[:MOST_CUBES],
                all_cubes=len(cubes),
                sizes=files.size.astype(np.float64),
                is_indexed=(files.revision > 0).tolist(),
            ),
            events=events[:_MOST_EVENTS],
            errors=tuple(event for event in events if event.state == FAILED)[:_MOST_ERRORS],
            plan=self._plan(table, snapshot) if with_plan else None,
        )

    def cancel(self, group: str) -> None:
        """Cancels the Spark jobs of a request.

        Args:
            group: the group.
        """
        self._spark.sparkContext.cancelJobGroup(group)

    def _plan(self, table: ManagedTable, snapshot: TableSnapshot) -> tuple[OptimizeRow, ...]:
        """The groups that the next run of a service rewrites; without a schedule, those of ``use.optimize``."""
        schedule = schedule_of(snapshot.settings)
        if isinstance(schedule, InvalidSchedule):
            raise schedule.error
        is_scheduled = isinstance(schedule, Schedule) and bool(schedule.strategies)
        settings = schedule.settings() if isinstance(schedule, Schedule) and is_scheduled else OptimizeSettings.of({})
        clock, database = self._app.clock, database_of(table.name)
        ledger = partial(ledger_of, self._spark, self._settings.fleet_location)
        budget = RunBudget(ledger, snapshot.inherited.pools(database), database, clock)
        settings = replace(settings.within(budget.group_bytes), dry_run=True)
        run = Run.of(table, CALL, settings.parameters, clock)
        # A dry run is not listed among the runs under way.
        return tuple(optimize(table, settings, run, app=Application(clock=clock)))


def _events(table: ManagedTable) -> tuple[EventLine, ...]:
    rows = _recent(optimizations(table)).collect()
    return tuple(
        EventLine(
            moment(row.started_at),
            row.kind,
            row.trigger,
            row.optimization_name or "",
            row.state,
            row.reason,
            row.files_in,
            row.files_out,
            row.bytes_in,
            row.bytes_out,
            row.version,
            ": ".join(text for text in (row.error_code, row.error) if text) or None,
        )
        for row in rows
    )


def _recent(events: DataFrame) -> DataFrame:
    def total(side: str, name: str) -> Any:
        return F.coalesce(F.col(f"{side}_files_stats.{name}"), F.lit(0))

    return (
        events.where(F.col("state") != IGNORED)
        .select(
            *(
                "started_at",
                "kind",
                "trigger",
                "optimization_name",
                "state",
                "reason",
                "version",
                "error",
                "error_code",
            ),
            total("input", "num_files").alias("files_in"),
            total("output", "num_files").alias("files_out"),
            total("input", "bytes").alias("bytes_in"),
            total("output", "bytes").alias("bytes_out"),
        )
        .orderBy(F.col("started_at").desc())
        .limit(_EVENTS_READ)
    )
