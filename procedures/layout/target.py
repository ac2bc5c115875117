"""Where new rows go: the revision and the tree that they join, for the optimizer and for writers alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.files.arrays import UNKNOWN
from catalog.properties.index_properties import CUBE_SIZE_RANGE, IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.cardinality import WeightCardinality
from otree.cube import CubeId
from otree.revision import Revision, configuration_of, next_revision, staging_of
from otree.transformation import ColumnStats
from otree.tree import CubeState, Tree
from otree.value_spread import ValueSpread
from procedures.layout.index_columns import IndexColumns, columns_of
from procedures.layout.row_layout import grown_tree
from procedures.layout.row_measures import RowMeasures, RowSample, has_other_hash_types, sample_of


def revision_for(
    snapshot: TableSnapshot,
    configuration: IndexConfiguration,
    stats: Sequence[ColumnStats],
    rows_of_file: int,
    location: str,
    weights: WeightCardinality | None = None,
    clock: Clock = SYSTEM_CLOCK,
    listed: TableSnapshot | None = None,
    above: int = 0,
) -> tuple[Revision, dict[str, str]]:
    """The revision that covers data of these ranges, and the properties that make it where it does not exist yet.

    Args:
        snapshot: the table.
        configuration: what is to be indexed.
        stats: range of the data per column.
        rows_of_file: rows of a file of the target size, the default of a cube's size.
        location: the table's root.
        weights: rows and distinct weights of the data, noted in a new revision.
        clock: the time, noted in a new revision.
        listed: an earlier version whose files are listed for numbers that are in use, so that a commit need not wait
            for a job; ``snapshot`` when left out.
        above: a new revision gets a greater number.
    """
    latest = snapshot.latest_revision
    smallest, largest = CUBE_SIZE_RANGE
    cube_size = configuration.cube_size or (
        latest.desired_cube_size if latest is not None else max(smallest, min(largest, rows_of_file))
    )
    renew = has_other_hash_types(snapshot, configuration)
    now = clock.now()
    revision = next_revision(latest, configuration.transformers, stats, cube_size, now, location, renew=renew)
    if latest is not None and revision.revision_id == latest.revision_id:
        return revision, {}
    weights = None if weights is None else _with_known_gaps(weights, revision.columns, snapshot)
    revision = replace(revision, weights=weights, revision_id=max(revision.revision_id, above + 1))
    taken = (listed or snapshot).revision_ids_in_use | snapshot.stored_revisions.numbers
    while revision.revision_id in taken:
        revision = replace(revision, revision_id=revision.revision_id + 1)
    first = [staging_of(revision)] if not snapshot.stored_revisions.numbers else []
    new = configuration_of([*first, revision])
    return revision, new | configuration.remembered(snapshot.settings, revision.revision_id)


def _with_known_gaps(
    weights: WeightCardinality, columns: tuple[str, ...], snapshot: TableSnapshot
) -> WeightCardinality:
    """What was measured, with the gaps that revisions of the same columns have.

    Their rows stay, so a gap stays. Rows that show one alone may be those of some files, which have a part of the
    weights each; so a revision that was measured by as many weights or more is believed.

    Args:
        weights: of the rows that the new revision is made for.
        columns: of the new revision.
        snapshot: the table.
    """
    revisions = snapshot.revisions.values()
    alike = [r.weights for r in revisions if r.weights is not None and r.columns == columns and not r.is_staging]
    is_new = all(other.distinct_weights < weights.distinct_weights for other in alike)
    return replace(weights, has_gaps=any(other.has_gaps for other in alike) or (weights.has_gaps and is_new))


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
    beside = _spread_of_other_files(snapshot, revision, replaced)
    return Target(sample, tree, remaining, file_share, {}, other_values=beside)


def target_for_new_rows(
    session: SparkSession,
    snapshot: TableSnapshot,
    configuration: IndexConfiguration,
    revision: Revision,
    new_properties: Mapping[str, str],
    measures: RowMeasures,
    rows: DataFrame,
    size: float,
    replaced: Sequence[str] = (),
) -> Target:
    """The target of rows that are not indexed yet.

    Args:
        session: session of the work.
        snapshot: the table that they join.
        configuration: what is to be indexed.
        revision: what ``revision_for`` has chosen.
        new_properties: the table properties that make it; none when it exists.
        measures: of the rows; at least one row.
        rows: the rows.
        size: bytes of the rows in files, measured or estimated; at least 1.
        replaced: paths of the files that the rows come from.
    """
    existing = {} if new_properties else snapshot.cube_states(revision)
    share = configuration.target_file_bytes / size
    sample = measures.sample
    if sample is None or sample.columns.revision.revision_id != revision.revision_id:
        columns = columns_of(session, snapshot, revision)
        sample, _ = sample_of(rows, measures.weights.rows, columns, share)
    tree = grown_tree(sample, Tree.current(revision.dimensions, existing), existing)
    beside = _spread_of_other_files(snapshot, revision, replaced)
    fractions = configuration.sample_fractions
    return Target(
        sample,
        tree,
        existing,
        share,
        new_properties,
        measures.weights,
        other_values=beside,
        sample_fractions=fractions,
    )


def _spread_of_other_files(
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
