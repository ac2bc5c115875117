"""The facts that a report shows about a table, gathered from metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from catalog.clock import Clock
from catalog.columns.column_names import shown_name
from catalog.errors import UnknownNameError
from catalog.files.arrays import UNKNOWN, Floats
from catalog.files.file_table import FileTable
from catalog.history.event_store import optimizations
from catalog.insights.consumption import scans_of
from catalog.insights.statement_notes import StatementNotes, statement_notes
from catalog.jvm.session import described_jobs
from catalog.jvm.table_versions import TableVersions
from catalog.properties.insight_properties import CONSUMPTION_ENABLED
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from procedures.insight.health.diagnosis import are_indexed
from procedures.insight.health.health import diagnosis_of
from procedures.insight.health.health_parts import fragmentation, unindexed_share
from procedures.insight.health.reads import sample_costs
from procedures.insight.health.remedy import AdviceStep
from procedures.insight.health.score import Part
from procedures.insight.recommendation.column_choice import choice_note

MAX_CUBES, MAX_EVENTS, MAX_VERSIONS, MAX_ASKED = 5_000, 200, 8, 20
FRACTIONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


@dataclass(frozen=True)
class CubeBox:
    """A cube of the newest revision over two columns.

    Attributes:
        x: its borders in the first column, as coordinates in [0, 1].
        y: its borders in the second one; (0, 1) for an index of one column.
        depth: depth.
        rows: rows.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    depth: int
    rows: int


@dataclass(frozen=True)
class VersionFacts:
    """The state of an earlier version.

    Attributes:
        version: the version.
        unindexed_share: share of the bytes in unindexed files.
        fragmentation: as in ``use.health``.
        sample: bytes that a sample of 1 % reads, relative to a fresh index; None without an index.
    """

    version: int
    unindexed_share: float
    fragmentation: float
    sample: float | None


@dataclass(frozen=True)
class Event:
    """An optimization.

    Attributes:
        started_at: epoch milliseconds.
        kind: ``optimize`` or ``vacuum``.
        strategy: its strategy.
        state: its outcome.
        bytes_in: bytes read.
        bytes_out: bytes written.
    """

    started_at: int
    kind: str
    strategy: str
    state: str
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True)
class FilteredColumns:
    """Scans that filter by the same columns.

    Attributes:
        columns: the columns, separated by commas; empty for scans without a condition.
        scans: how many there were.
        selectivity: share of the rows read that they kept, on average; None if unknown.
        skipped: share of the bytes of the table that they skipped.
    """

    columns: str
    scans: int
    selectivity: float | None
    skipped: float


@dataclass(frozen=True, eq=False)
class TableFacts:
    """Everything that a report shows.

    Attributes:
        name: full name of the table.
        version: newest version.
        made_at: epoch milliseconds.
        rows: live rows; None if the log does not record them.
        files: live files.
        bytes: their bytes.
        index_columns: logical names of the indexed columns; empty without an index.
        shown_columns: the one or two columns of ``cubes``.
        cubes: cubes of the newest revision, the largest first.
        all_cubes: how many there are.
        sizes: bytes of each file.
        levels: level of each file; -1 if unindexed.
        depths: rows per depth of the tree.
        bands: bytes of the files of each band of weights, by its end as a fraction.
        samples: fraction, bytes that a sample reads, and those that a fresh index would read.
        versions: earlier versions, the oldest first.
        events: optimizations, the oldest first.
        score: score of the health.
        parts: its parts.
        steps: the advised steps, in order.
        filtered_columns: the columns that recorded scans filter by, most frequent first; None if not recorded.
        statements: what commits in the log say of the statements that made them.
        column_choice: a note about index columns that the service chooses; None if it does not.
    """

    name: str
    version: int
    made_at: int
    rows: int | None
    files: int
    bytes: int
    index_columns: tuple[str, ...]
    shown_columns: tuple[str, ...]
    cubes: tuple[CubeBox, ...]
    all_cubes: int
    sizes: Floats
    levels: Floats
    depths: tuple[tuple[int, int], ...]
    bands: tuple[tuple[float, int], ...]
    samples: tuple[tuple[float, float, float], ...]
    versions: tuple[VersionFacts, ...]
    events: tuple[Event, ...]
    score: int
    parts: tuple[Part, ...]
    steps: tuple[AdviceStep, ...] = ()
    filtered_columns: tuple[FilteredColumns, ...] | None = None
    statements: StatementNotes = field(default_factory=StatementNotes)
    column_choice: str | None = None


def gather(table: ManagedTable, clock: Clock, columns: tuple[str, ...] | None = None) -> TableFacts:
    """Gathers the facts of a table; reads metadata only.

    Args:
        table: the table.
        clock: the time.
        columns: names of the one or two indexed columns over which cubes are drawn; the first two by default.

    Raises:
        UnknownNameError: a column that is not indexed.
        NotSupportedError: see ``health_of``.
    """
    snapshot = table.snapshot()
    diagnosis = diagnosis_of(table, clock)
    with described_jobs(table.spark, f"USE report: {table.name}"):
        files = snapshot.file_table
        newest = snapshot.latest_revision
        names = () if newest is None else tuple(shown_name(snapshot.schema, column) for column in newest.columns)
        axes = _axes(names, columns)
        cubes = () if newest is None else cube_boxes(snapshot, newest, axes)
        rows = files.rows
        return TableFacts(
            name=table.name,
            version=snapshot.version,
            made_at=clock.now(),
            rows=None if (rows == UNKNOWN).any() else int(rows.sum()),
            files=len(files),
            bytes=int(files.size.sum()),
            index_columns=names,
            shown_columns=tuple(names[axis] for axis in axes),
            cubes=cubes[:MAX_CUBES],
            all_cubes=len(cubes),
            sizes=files.size.astype(np.float64),
            levels=np.where(files.revision == 0, -1, np.maximum(files.levels, 0)).astype(np.float64),
            depths=_depths(cubes),
            bands=_bands(files),
            samples=_samples(snapshot, files, newest),
            versions=_versions(table, snapshot),
            events=_events(table),
            score=diagnosis.score,
            parts=tuple(diagnosis.parts),
            steps=diagnosis.steps,
            filtered_columns=_filtered_columns(table, snapshot),
            column_choice=choice_note(table, snapshot),
            statements=statement_notes(snapshot),
        )


def _axes(names: tuple[str, ...], columns: tuple[str, ...] | None) -> tuple[int, ...]:
    if columns is None:
        return tuple(range(min(len(names), 2)))
    for column in columns:
        if column not in names:
            raise UnknownNameError.of("column", column, names, "columns")
    return tuple(names.index(column) for column in columns)


def cube_boxes(snapshot: TableSnapshot, newest: Revision, axes: tuple[int, ...]) -> tuple[CubeBox, ...]:
    """Returns the cubes of the newest revision over one or two columns, by depth, and those with more rows first.

    Args:
        snapshot: a version.
        newest: its newest revision.
        axes: numbers of the one or two columns among the indexed ones.
    """
    cubes = []
    for cube, state in snapshot.cube_states(newest).items():
        box = cube.box()
        across = box[axes[0]]
        up = box[axes[1]] if len(axes) > 1 else (0.0, 1.0)
        cubes.append(CubeBox(across, up, cube.depth, state.element_count))
    return tuple(sorted(cubes, key=lambda cube: (cube.depth, -cube.rows, cube.x, cube.y)))


def _depths(cubes: Sequence[CubeBox]) -> tuple[tuple[int, int], ...]:
    rows: dict[int, int] = {}
    for cube in cubes:
        rows[cube.depth] = rows.get(cube.depth, 0) + cube.rows
    return tuple(sorted(rows.items()))


def _bands(files: FileTable) -> tuple[tuple[float, int], ...]:
    """Bytes by the end of the band of weights; unindexed files have all weights."""
    known = files.band_end != UNKNOWN
    ends = np.where(known, (files.band_end.astype(np.float64) + 2.0**31) / 2.0**32, 1.0)
    powers = np.ceil(np.log10(np.clip(ends, 1e-9, 1.0)) - 1e-6)
    bands = [(float(10.0**power), int(files.size[powers == power].sum())) for power in np.unique(powers)]
    return tuple(bands)


def _samples(
    snapshot: TableSnapshot, files: FileTable, newest: Revision | None
) -> tuple[tuple[float, float, float], ...]:
    if newest is None or not len(files):
        return ()
    target = TARGET_FILE_BYTES.value(snapshot.settings)
    return sample_costs(
        files, are_indexed(snapshot.revisions, files, newest), target, FRACTIONS, _named_fractions(snapshot)
    )


def _named_fractions(snapshot: TableSnapshot) -> tuple[float, ...]:
    index = snapshot.index_configuration
    return () if index is None else index.sample_fractions


def _versions(table: ManagedTable, snapshot: TableSnapshot) -> tuple[VersionFacts, ...]:
    """Up to ``MAX_VERSIONS`` versions that the log can make, evenly spaced, with the newest one."""
    versions: TableVersions = table.handle.versions(table.spark)
    oldest = versions.oldest()
    numbers = np.unique(np.linspace(oldest, snapshot.version, MAX_VERSIONS).astype(np.int64))
    facts = []
    for number in numbers.tolist():
        then = snapshot if number == snapshot.version else TableSnapshot.of(versions.state(number), table.location)
        files = then.file_table
        newest = then.latest_revision
        sample = None
        if newest is not None and len(files):
            target = TARGET_FILE_BYTES.value(then.settings)
            costs = sample_costs(
                files, are_indexed(then.revisions, files, newest), target, (0.01,), _named_fractions(then)
            )
            sample = costs[0][1] / max(costs[0][2], 1.0) if costs else None
        fragments = 0.0 if newest is None else fragmentation(files, newest)
        facts.append(VersionFacts(number, unindexed_share(files), fragments, sample))
    return tuple(facts)


def _events(table: ManagedTable) -> tuple[Event, ...]:
    rows = (
        optimizations(table)
        .where("state <> 'ignored'")
        .select(
            "started_at",
            "kind",
            "optimization_name",
            "state",
            F.coalesce(F.col("input_files_stats.bytes"), F.lit(0)).alias("bytes_in"),
            F.coalesce(F.col("output_files_stats.bytes"), F.lit(0)).alias("bytes_out"),
        )
        .orderBy(F.col("started_at").desc())
        .limit(MAX_EVENTS)
        .collect()
    )
    return tuple(_event(row) for row in reversed(rows))


def _filtered_columns(table: ManagedTable, snapshot: TableSnapshot) -> tuple[FilteredColumns, ...] | None:
    """Returns the columns that recorded scans filter by; one Spark job if consumption is recorded, else none."""
    if not CONSUMPTION_ENABLED.value(snapshot.settings):
        return None
    columns = F.array_join(F.array_sort(F.array_distinct(F.col("filters.column"))), ", ")
    whole, read = F.sum("table_size.bytes"), F.sum("read.bytes")
    rows = (
        scans_of(table)
        .groupBy(F.coalesce(columns, F.lit("")).alias("columns"))
        .agg(
            F.count(F.lit(1)).alias("scans"),
            F.avg("selectivity").alias("selectivity"),
            F.coalesce(1 - read / F.nullif(whole, F.lit(0)), F.lit(0.0)).alias("skipped"),
        )
        .orderBy(F.col("scans").desc(), "columns")
        .limit(MAX_ASKED)
        .collect()
    )
    return tuple(FilteredColumns(row["columns"], row.scans, row.selectivity, row.skipped) for row in rows)


def _event(row: Any) -> Event:
    return Event(row.started_at, row.kind, row.optimization_name or "", row.state, row.bytes_in, row.bytes_out)
