"""The data of one table of a Spark application, gathered from its metadata when somebody asks for it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.columns.column_names import shown_name
from catalog.epoch_millis import moment
from catalog.files.arrays import UNKNOWN
from catalog.history.event_store import optimizations
from catalog.history.events import FAILED, IGNORED
from catalog.jvm.metastore import database_of
from catalog.system_tables.system_table import error_text
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.calls.status import status
from procedures.declare.declaration import Call
from procedures.declare.runs import CALL, Run
from procedures.declare.signature import DETAILS
from procedures.fleet.budget import RunBudget
from procedures.insight.health.diagnosis import health_rows
from procedures.insight.health.health import diagnosis_of
from procedures.insight.report.facts import cube_boxes
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.report import OptimizeRow
from procedures.loop.table_optimizer import optimize
from procedures.process.application import Application
from procedures.service.execution import ledger_of, prepare_thread
from procedures.service.schedule import InvalidSchedule, Schedule, schedule_of
from procedures.service.service_settings import ServiceSettings
from sql_ext.dashboard.layout_picture import MOST_CUBES
from sql_ext.dashboard.table_data import EventLine, Layout, TableData

_MOST_EVENTS, _MOST_ERRORS = 30, 5
_EVENTS_READ = 200


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
            UseError: the table cannot be read.
        """
        spark, clock = self._spark, self._app.clock
        prepare_thread(spark, self._settings.pool)
        spark.sparkContext.setJobGroup(group, f"USE dashboard: {name}")
        table = ManagedTable.find(spark, name)
        snapshot = table.snapshot()
        files = snapshot.file_table
        newest = snapshot.latest_revision
        names = () if newest is None else tuple(shown_name(snapshot.schema, column) for column in newest.columns)
        axes = tuple(range(min(len(names), 2)))
        index = snapshot.index_configuration
        declared = () if index is None else tuple(index.logical_columns)
        cubes = () if newest is None else cube_boxes(snapshot, newest, axes)
        diagnosis = diagnosis_of(table, clock)
        events = _events(table)
        plan, plan_problem = self._plan_or_problem(table, snapshot) if with_plan else (None, None)
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
                columns=names or declared,
                shown_columns=tuple(names[axis] for axis in axes),
                cubes=cubes[:MOST_CUBES],
                all_cubes=len(cubes),
                sizes=files.size.astype(np.float64),
                is_indexed=(files.revision > 0).tolist(),
            ),
            events=events[:_MOST_EVENTS],
            errors=tuple(event for event in events if event.state == FAILED)[:_MOST_ERRORS],
            plan=plan,
            plan_problem=plan_problem,
        )

    def cancel(self, group: str) -> None:
        """Cancels the Spark jobs of a request.

        Args:
            group: the group.
        """
        self._spark.sparkContext.cancelJobGroup(group)

    def _plan_or_problem(
        self, table: ManagedTable, snapshot: TableSnapshot
    ) -> tuple[tuple[OptimizeRow, ...] | None, str | None]:
        try:
            return self._plan(table, snapshot), None
        except Exception as error:  # noqa: BLE001 - the rest of the page is there all the same
            return None, error_text(error)

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
