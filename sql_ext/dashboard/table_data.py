"""What the page of one table shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.files.arrays import Floats
from procedures.calls.status import StatusRow
from procedures.insight.health.diagnosis import HealthRow
from procedures.insight.health.remedy import AdviceStep
from procedures.insight.report.facts import CubeBox
from procedures.loop.report import OptimizeRow


@dataclass(frozen=True)
class EventLine:
    """An optimization or vacuum of the table; names and units as in ``<table>.optimizations``."""

    started_at: datetime | None
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
        columns: logical names of the indexed columns, or of those that are declared; empty without any.
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
        plan_problem: why there is no plan although somebody asked for it.
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
    plan_problem: str | None = None
