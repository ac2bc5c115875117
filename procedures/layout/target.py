"""Where new rows go: the revision and the tree that they join, for the optimizer and for writers alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.files.file_table import UNKNOWN
from catalog.properties.index_properties import IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.cardinality import WeightCardinality
from otree.cube import CubeId
from otree.revision import Revision
from otree.tree import CubeState, Tree
from otree.value_spread import ValueSpread
from procedures.layout.index_columns import IndexColumns, columns_of
from procedures.layout.observation import Observation
from procedures.layout.revision_choice import revision_for
from procedures.layout.row_layout import grown_tree
from procedures.layout.row_sample import RowSample, sample_of


@dataclass(frozen=True)
class Target:
    """The tree that rows join.

    Attributes:
        sample: a sample of the rows, in the revision.
        tree: thresholds of its cubes once the rows are in.
        remaining: the revision's live cubes without the files that are replaced.
        file_share: rows of one file as a share of the rows; above 1 when all fit in one.
        new_properties: table properties that make the revision; empty when it exists.
        weights: how many different weights the rows have, None where nobody looked.
        weight_span: length of the range of weights that the rows come from, as a share of all weights.
        other_values: how the table's other rows lie over the values of each indexed column, as the ranges of their
            files tell; None for a column without ranges, empty where nothing is known.
        sample_fractions: samples for which bands end.
    """

    sample: RowSample
    tree: Tree
    remaining: Mapping[CubeId, CubeState]
    file_share: float
    new_properties: Mapping[str, str]
    weights: WeightCardinality | None = None
    weight_span: float = 1.0
    other_values: Sequence[ValueSpread | None] = ()
    sample_fractions: Sequence[float] = ()

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.sample.rows

    @property
    def columns(self) -> IndexColumns:
        """The revision's columns over the rows."""
        return self.sample.columns

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


def target_in_revision(
    session: SparkSession,
    snapshot: TableSnapshot,
    revision: Revision,
    replaced: Sequence[str],
    rows: DataFrame,
    expected: int,
    file_share: float,
) -> Target:
    """The target of rows that stay in their revision, whose tree grows where its cubes hold too many rows.

    Args:
        session: session of the work.
        snapshot: the table.
        revision: the rows' revision.
        replaced: paths of the files that the rows come from.
        rows: the rows.
        expected: how many they are, as the log tells.
        file_share: see ``Target``.
    """
    current = Tree.current(revision.dimensions, snapshot.cube_states(revision))
    remaining = snapshot.cube_states(revision, replaced)
    columns = columns_of(session, snapshot, revision)
    sample, _ = sample_of(rows, expected, columns, file_share)
    tree = grown_tree(sample, current, remaining)
    beside = _values_beside(snapshot, revision, replaced)
    return Target(sample, tree, remaining, file_share, {}, other_values=beside)


def target_for_new_rows(
    session: SparkSession,
    snapshot: TableSnapshot,
    configuration: IndexConfiguration,
    seen: Observation,
    rows: DataFrame,
    size_of: Callable[[int], float],
    location: str,
    clock: Clock = SYSTEM_CLOCK,
    replaced: Sequence[str] = (),
) -> Target:
    """The target of rows that are not indexed yet: the newest revision when it covers them, else a new one.

    Args:
        session: session of the work.
        snapshot: the table that they join.
        configuration: what is to be indexed.
        seen: what a look at the rows has told; at least one row.
        rows: the rows.
        size_of: bytes that a number of such rows takes in files, measured or estimated.
        location: the table's root, noted in a new revision.
        clock: the time, noted in a new revision.
        replaced: paths of the files that the rows come from.
    """
    count = seen.weights.rows
    size = max(size_of(count), 1.0)
    revision, new = revision_for(
        snapshot,
        configuration,
        seen.stats,
        int(configuration.target_file_bytes * count / size),
        location,
        seen.weights,
        clock,
    )
    existing = {} if new else snapshot.cube_states(revision)
    share = configuration.target_file_bytes / size
    sample = seen.sample
    if sample is None or sample.columns.revision.revision_id != revision.revision_id:
        columns = columns_of(session, snapshot, revision)
        sample, _ = sample_of(rows, count, columns, share)
    tree = grown_tree(sample, Tree.current(revision.dimensions, existing), existing)
    beside = _values_beside(snapshot, revision, replaced)
    fractions = configuration.sample_fractions
    return Target(sample, tree, existing, share, new, seen.weights, other_values=beside, sample_fractions=fractions)


def _values_beside(
    snapshot: TableSnapshot, revision: Revision, replaced: Sequence[str]
) -> tuple[ValueSpread | None, ...]:
    """How the rows of all files but some lie over the values of a revision's columns; see ``Target``.

    Empty where the table has too many files to look at: the order of the rows then follows these rows alone.
    """
    newest = snapshot.latest_revision
    # The ranges in memory are those of the newest revision's columns.
    files = snapshot.file_table_if_few if newest is not None and newest.columns == revision.columns else None
    if files is None:
        return ()
    files = files.where(~files.with_paths(frozenset(replaced)) & (files.rows != UNKNOWN))
    rows = files.rows.astype(np.float64)
    return tuple(ValueSpread.of_files(low, high, rows) for low, high in zip(files.low.T, files.high.T, strict=True))
