"""Where new rows go: the revision and the tree that they join, for the optimizer and for writers alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.properties.index_properties import CUBE_SIZE_RANGE, HASH_TYPES_KEY_PREFIX, IndexConfiguration, logical_name
from catalog.table.column_names import find_stored
from catalog.table.snapshot import TableSnapshot
from otree.cardinality import WeightCardinality
from otree.cube import CubeId
from otree.revision import Revision, configuration_of, next_revision, staging_of
from otree.transformation import ColumnStats
from otree.tree import CubeState, Tree
from procedures.layout.index_columns import IndexColumns, Observation
from procedures.layout.row_layout import grown_tree


@dataclass(frozen=True)
class Target:
    """The tree that rows join.

    Attributes:
        rows: how many rows.
        columns: the revision's columns over the rows.
        tree: thresholds of its cubes once the rows are in.
        remaining: the revision's live cubes without the files that are replaced.
        file_share: rows of one file as a share of the rows; above 1 when all fit in one.
        new_properties: table properties that make the revision; empty when it exists.
        weights: how many different weights the rows have, None where nobody looked.
    """

    rows: int
    columns: IndexColumns
    tree: Tree
    remaining: Mapping[CubeId, CubeState]
    file_share: float
    new_properties: Mapping[str, str]
    weights: WeightCardinality | None = None

    @property
    def beside(self) -> int:
        """Rows of the revision in files that stay."""
        return sum(state.element_count for state in self.remaining.values())

    @property
    def warning(self) -> str | None:
        """What the owner should know about the data, None when nothing."""
        if self.weights is None or not self.weights.is_low(self.columns.revision.desired_cube_size):
            return None
        return self.weights.message


def columns_of(session: SparkSession, snapshot: TableSnapshot, revision: Revision) -> IndexColumns:
    """The columns of a revision under the names that they have in the snapshot."""
    return IndexColumns(session, revision, tuple(logical_name(snapshot.schema, c) for c in revision.columns))


def stored_columns_of(session: SparkSession, snapshot: TableSnapshot, revision: Revision) -> IndexColumns:
    """The columns of a revision under the names that they have in data files."""
    found = [find_stored(snapshot.schema, c) for c in revision.columns]
    return IndexColumns(session, revision, tuple(column.stored_name for column in found if column is not None))


def target_in_revision(
    session: SparkSession,
    snapshot: TableSnapshot,
    revision: Revision,
    replaced: Sequence[str],
    rows: int,
    file_share: float,
) -> Target:
    """The target of rows that stay in their revision and keep its thresholds.

    Args:
        session: session of the work.
        snapshot: the table.
        revision: the rows' revision.
        replaced: paths of the files that the rows come from.
        rows: how many rows.
        file_share: see ``Target``.
    """
    tree = Tree.current(revision.dimensions, snapshot.cube_states(revision))
    remaining = snapshot.cube_states(revision, replaced)
    return Target(rows, columns_of(session, snapshot, revision), tree, remaining, file_share, {})


def target_for_new_rows(
    session: SparkSession,
    snapshot: TableSnapshot,
    found: IndexConfiguration,
    seen: Observation,
    rows: DataFrame,
    size_of: Callable[[int], float],
    location: str,
    clock: Clock = SYSTEM_CLOCK,
) -> Target:
    """The target of rows that are not indexed yet: the newest revision when it covers them, else a new one.

    Args:
        session: session of the work.
        snapshot: the table that they join.
        found: what is to be indexed.
        seen: what a look at the rows has told; at least one row.
        rows: the rows.
        size_of: bytes that a number of such rows takes in files, measured or estimated.
        location: the table's root, noted in a new revision.
        clock: the time, noted in a new revision.
    """
    count = seen.weights.rows
    size = max(size_of(count), 1.0)
    revision, new = revision_for(
        snapshot, found, seen.stats, int(found.target_file_bytes * count / size), location, seen.weights, clock
    )
    columns = columns_of(session, snapshot, revision)
    existing = {} if new else snapshot.cube_states(revision)
    tree = grown_tree(rows, count, columns, existing)
    return Target(count, columns, tree, existing, found.target_file_bytes / size, new, seen.weights)


def revision_for(
    snapshot: TableSnapshot,
    found: IndexConfiguration,
    stats: Sequence[ColumnStats],
    rows_of_file: int,
    location: str,
    weights: WeightCardinality | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Revision, dict[str, str]]:
    """The revision that covers data of these ranges, and the properties that make it where it does not exist yet.

    Args:
        snapshot: the table.
        found: what is to be indexed.
        stats: range of the data per column.
        rows_of_file: rows of a file of the target size, the default of a cube's size.
        location: the table's root.
        weights: rows and distinct weights of the data, noted in a new revision.
        clock: the time, noted in a new revision.
    """
    latest = snapshot.latest_revision
    smallest, largest = CUBE_SIZE_RANGE
    cube_size = found.cube_size or (
        latest.desired_cube_size if latest is not None else max(smallest, min(largest, rows_of_file))
    )
    renew = hashed_otherwise(snapshot, found)
    now = clock.now()
    revision = next_revision(latest, found.transformers, stats, cube_size, now, location, renew=renew)
    if latest is not None and revision.revision_id == latest.revision_id:
        return revision, {}
    revision = replace(revision, weights=weights)
    while revision.revision_id in snapshot.revision_ids_in_use:
        revision = replace(revision, revision_id=revision.revision_id + 1)
    first = [staging_of(revision)] if not snapshot.stored_revisions.numbers else []
    new = configuration_of([*first, revision])
    return revision, new | found.remembered(snapshot.configuration, revision.revision_id)


def hashed_otherwise(snapshot: TableSnapshot, found: IndexConfiguration) -> bool:
    """Whether the columns' types hash differently from when the newest revision was made."""
    latest = snapshot.latest_revision
    written_as = snapshot.configuration.get(f"{HASH_TYPES_KEY_PREFIX}{latest.revision_id}") if latest else None
    return written_as is not None and written_as != ";".join(found.hash_types)
