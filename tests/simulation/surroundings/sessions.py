"""What stands for a session, and for the events that Spark reads out of the log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from catalog.history.events import EVENT_KEY
from catalog.table.managed_table import ManagedTable
from simulation.surroundings.frames import Frame
from simulation.surroundings.paths import ROOT
from simulation.surroundings.table_handle import Handle

if TYPE_CHECKING:
    from simulation.world import World


class Session:
    """Stands for a ``SparkSession`` of one process."""

    def __init__(self, world: World) -> None:
        self.world = world
        settings: dict[str, str] = {}
        self.conf = SimpleNamespace(set=settings.__setitem__, get=settings.get)
        self.sparkContext = SimpleNamespace(
            getLocalProperty=lambda _: None,
            setLocalProperty=lambda *_: None,
            defaultParallelism=2,
            applicationId="app",
        )
        self.table = ManagedTable(self, "t", ROOT, Handle(world, self))  # type: ignore[arg-type]

    def createDataFrame(self, rows: Iterable[tuple[Any, ...]], schema: str) -> Frame:  # noqa: N802
        """See ``SparkSession.createDataFrame``."""
        names = [column.split()[0] for column in schema.split(", ")]
        return Frame(names, [dict(zip(names, row, strict=True)) for row in rows])

    def sql(self, text: str) -> Frame:
        """Answers ``DESCRIBE HISTORY``, newest first."""
        log = self.world.log
        newest = log.read("history")
        limit = int(text.rsplit(" LIMIT ", 1)[1]) if " LIMIT " in text else newest + 1
        rows = [
            {
                "version": commit.version,
                "operation": commit.operation,
                "operationParameters": dict(commit.parameters),
                "operationMetrics": dict(commit.metrics),
            }
            for commit in reversed(log.commits)
            if commit.version in log.stored
        ]
        return Frame(["version", "operation", "operationParameters", "operationMetrics"], rows[:limit])


def events_in_log(table: ManagedTable, limit: int | None = None) -> Frame:
    """See ``catalog.history.event_rows.events_in_log``; as many columns as a commit looks at."""
    return committed_events(table.history(limit))


def committed_events(history: Frame) -> Frame:
    """See ``catalog.history.event_rows.committed_events``."""
    rows = []
    for row in history.rows:
        if EVENT_KEY in row["operationParameters"]:
            event = json.loads(row["operationParameters"][EVENT_KEY])
            rows.append({"version": row["version"], "write_id": event["write_id"], "parameters": event["parameters"]})
    return Frame(["version", "write_id", "parameters"], rows)


def short_commits(spark: Session, location: str, versions: tuple[int, int]) -> dict[int, str] | None:
    """See ``catalog.files.log_changes.short_commits``."""
    log = spark.world.log
    log.read("events")
    texts = {}
    for version in range(versions[0] + 1, versions[1] + 1):
        if version not in log.stored:
            return None
        commit = log.commits[version]
        info = {"operation": commit.operation, "operationParameters": dict(commit.parameters)}
        texts[version] = json.dumps({"commitInfo": info}, separators=(",", ":"))
    return texts
