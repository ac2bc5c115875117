"""The health of a table, from its metadata."""

from __future__ import annotations

import numpy as np
from pyspark.sql import functions as F

from catalog.clock import Clock
from catalog.errors import NotSupportedError
from catalog.history.event_store import recent_failures
from catalog.jvm.session import described_jobs
from catalog.properties.index_properties import TARGET_FILE_BYTES
from catalog.table.file_columns import UNKNOWN, FileColumns, Flags
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.overfull import is_overfull
from otree.revision import Revision
from procedures.table_health.reads import BOX_1, SAMPLE_1, SAMPLE_10, ReadCost, read_costs
from procedures.table_health.score import Part, score_of

# Files that the driver judges; each takes about a kilobyte of its memory.
MAX_FILES = 200_000
_WEEK_MILLIS = 7 * 24 * 3600 * 1000
# What Spark reckons for opening a file (spark.sql.files.openCostInBytes).
_OPEN_COST = 4 * 1024 * 1024
_HALF = 0.5


def health_of(table: ManagedTable, clock: Clock) -> list[Part]:
    """Measures the parts of a table's health; reads metadata only.

    Args:
        table: the table.
        clock: the time.

    Raises:
        NotSupportedError: the table has more than ``MAX_FILES`` files.
    """
    snapshot = table.snapshot()
    with described_jobs(table.spark, f"USE health: {table.name}"):
        files = table_files(snapshot)
        parts = _index_parts(table, snapshot, files)
        return [*parts, *_file_parts(table, snapshot, files), *_log_parts(table, snapshot, clock)]


def table_score(table: ManagedTable, clock: Clock) -> int:
    """Returns the score of a table's health, from 0 to 100.

    Args:
        table: the table.
        clock: the time.

    Raises:
        NotSupportedError: see ``health_of``.
    """
    return score_of(health_of(table, clock))


def table_files(snapshot: TableSnapshot) -> FileColumns:
    """Returns the files of a version, with the ranges of the indexed columns.

    Args:
        snapshot: the version.

    Raises:
        NotSupportedError: it has more than ``MAX_FILES`` files.
    """
    columns = snapshot.columns
    if columns is not None:
        return columns
    newest = snapshot.latest_revision
    rows = snapshot.file_rows if newest is None else snapshot.rows_with_bounds(newest)
    if newest is None:
        empty = F.array().cast("array<double>")
        rows = rows.withColumns({"low": empty, "high": empty})
    table = rows.drop("partition_values").limit(MAX_FILES + 1).toArrow()
    if table.num_rows > MAX_FILES:
        raise NotSupportedError(
            f"{snapshot.location} has more than {MAX_FILES} files, which use.health does not compare."
        )
    return FileColumns.of(table)


# ------------------------------------------------------------------------------------------------------------ index


def _index_parts(table: ManagedTable, snapshot: TableSnapshot, files: FileColumns) -> list[Part]:
    newest = snapshot.latest_revision
    if newest is None or not len(files):
        return _without_index(table, snapshot, files)
    is_indexed = are_indexed(snapshot, files, newest)
    target = TARGET_FILE_BYTES.value(snapshot.configuration)
    costs = read_costs(files, is_indexed, target)
    if not costs:
        return []
    unindexed = files.revision == 0
    optimize = f"CALL use.optimize({_text(table)})"
    older = (files.revision > 0) & ~is_indexed
    rewrite = f"CALL use.optimize({_text(table)}, revision_rewrite => true)"
    reads = optimize if not older.any() else rewrite
    extra = [cost.unindexed_bytes - cost.fresh_bytes * _share(files, unindexed) for cost in costs.values()]
    parts = [
        Part("unindexed_share", _share(files, unindexed), _bytes(float(np.mean(extra))), optimize),
        Part("fragmentation", fragmentation(files, newest), None, optimize),
        Part("overlap", _ratio(costs[BOX_1].files, costs[BOX_1].fresh_files), _opened(costs[BOX_1]), reads),
    ]
    parts += [
        Part(name, _ratio(costs[name].bytes, costs[name].fresh_bytes), _beyond(costs[name]), reads)
        for name in (SAMPLE_1, SAMPLE_10, BOX_1)
    ]
    overfull, cubes = _overfull(snapshot, newest)
    return [*parts, Part("overfull_cubes", overfull / max(cubes, 1), None, optimize)]


def _without_index(table: ManagedTable, snapshot: TableSnapshot, files: FileColumns) -> list[Part]:
    """A table with index columns whose files nobody has indexed; a plain table has no such part."""
    if snapshot.index_configuration is None or not len(files):
        return []
    size, optimize = int(files.size.sum()), f"CALL use.optimize({_text(table)})"
    # Every sample and box reads everything; boxes may skip files by statistics, which an index column list alone does
    # not tell.
    reads = {SAMPLE_1: 0.01, SAMPLE_10: 0.1, BOX_1: 0.01}
    parts = [Part(name, 1.0 / share, _bytes(size * (1.0 - share)), optimize) for name, share in reads.items()]
    return [Part("unindexed_share", 1.0, size, optimize), *parts]


def are_indexed(snapshot: TableSnapshot, files: FileColumns, newest: Revision) -> Flags:
    """Whether the index skips each file by weight: weights are hashes of the columns of the newest revision.

    Args:
        snapshot: the version.
        files: its files.
        newest: its newest revision.
    """
    alike = [number for number, revision in snapshot.revisions.items() if revision.columns == newest.columns]
    return np.isin(files.revision, alike) & (files.revision > 0)


def _share(files: FileColumns, chosen: Flags) -> float:
    return float(files.size[chosen].sum() / max(int(files.size.sum()), 1))


def unindexed_share(files: FileColumns) -> float:
    """Returns the share of the bytes in unindexed files.

    Args:
        files: the files of a version.
    """
    return _share(files, files.revision == 0)


def fragmentation(files: FileColumns, newest: Revision) -> float:
    """Returns the share of the newest revision's blocks that a rewrite would merge: of one cube, and several writes.

    Args:
        files: the files of a version.
        newest: its newest revision.
    """
    blocks = files.blocks
    ours = files.revision[blocks.file] == newest.revision_id
    cube, write = blocks.cube[ours], files.write[blocks.file[ours]]
    if not len(cube):
        return 0.0
    pairs = np.unique(np.stack([cube, write]), axis=1).shape[1]
    return 1.0 - len(np.unique(cube)) / int(pairs)


def _overfull(snapshot: TableSnapshot, newest: Revision) -> tuple[int, int]:
    states = snapshot.cube_states(newest).values()
    return sum(is_overfull(state.element_count, newest.desired_cube_size) for state in states), len(states)


def _text(table: ManagedTable) -> str:
    """The name of the table as a literal of SQL."""
    escaped = table.name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _ratio(cost: float, fresh: float) -> float:
    return cost / max(fresh, 1.0)


def _beyond(cost: ReadCost) -> int:
    return _bytes(cost.bytes - cost.fresh_bytes)


def _opened(cost: ReadCost) -> int:
    return _bytes((cost.files - cost.fresh_files) * _OPEN_COST)


def _bytes(number: float) -> int:
    return max(0, round(number))


# ------------------------------------------------------------------------------------------------------- files, log


def _file_parts(table: ManagedTable, snapshot: TableSnapshot, files: FileColumns) -> list[Part]:
    target = TARGET_FILE_BYTES.value(snapshot.configuration)
    # The layout decides about the size of indexed files.
    plain = files.where(files.revision == 0)
    _, partition = np.unique(plain.partition, return_inverse=True)
    size = np.bincount(partition, plain.size) if len(plain) else np.zeros(0)
    needed = float(np.ceil(size / target).sum())
    number = f"CALL use.optimize({_text(table)}, strategy => 'SizeTieredClustering')"
    if snapshot.index_configuration is not None:
        number = f"CALL use.optimize({_text(table)})"
    ratio = len(plain) / needed if needed else 0.0
    hidden = int(files.deleted[files.deleted != UNKNOWN].sum())
    rows = int(files.rows[files.rows != UNKNOWN].sum()) + hidden
    with_vector = files.deletion_vector != ""
    share = hidden / rows if rows else 0.0
    deleted_bytes = round(
        float(files.size[with_vector].sum()) * min(share / max(_share(files, with_vector), 1e-9), 1.0)
    )
    return [
        Part("small_files", ratio, _bytes((len(plain) - needed) * _OPEN_COST), number),
        Part("deleted_rows", share, deleted_bytes, f"CALL use.compact({_text(table)})"),
    ]


def _log_parts(table: ManagedTable, snapshot: TableSnapshot, clock: Clock) -> list[Part]:
    versions = table.handle.versions(table.spark)
    commits = snapshot.version - max(versions.checkpoint_before(snapshot.version), -1)
    log = Part("log_length", float(commits), snapshot.extent.log_bytes, f"CALL use.consolidate_log({_text(table)})")
    failed = recent_failures(table, snapshot.table_id, clock.now() - _WEEK_MILLIS)
    look = f"SELECT * FROM {table.name}.optimizations WHERE state = 'failed'"
    return [log, Part("failures", float(failed), None, look)]
