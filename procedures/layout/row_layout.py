"""Decides where rows go: the tree that a group's rows join, and the file of each weight and place on the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from otree.cube import CubeId
from otree.growth import grow
from otree.packing import Packing, pack
from otree.tree import CubeState, Tree
from otree.value_spread import ValueSpread
from procedures.layout.curve_order import CurveOrder, sampled_order
from procedures.layout.index_columns import IndexColumns
from procedures.layout.row_sample import RowSample

# Targets at which a file is closed whatever the packing says.
_LARGEST_FILE = 1.9
_KEY = "__use_curve_key"


@dataclass(frozen=True)
class Layout:
    """Where each row goes.

    Attributes:
        tree: thresholds of the cubes.
        order: the curve along which rows are cut and sorted.
        packing: file of each weight and place on the curve.
        rows: number of rows.
        largest_file: rows after which a file is closed and another begun, so that none is above two targets even if
            the sample misled.
    """

    tree: Tree
    order: CurveOrder
    packing: Packing
    rows: int
    largest_file: int


def grown_tree(sample: RowSample, current: Tree, existing: Mapping[CubeId, CubeState]) -> Tree:
    """The tree that rows join, grown where cubes would hold too many rows with them.

    Args:
        sample: a sample of the rows.
        current: the current tree of their revision.
        existing: live cubes of the revision without the files that the rows come from.
    """
    return grow(current, existing, sample.placed, sample.columns.revision.desired_cube_size)


def lay_out(
    sample: RowSample,
    tree: Tree,
    file_share: float,
    beside: int = 0,
    weight_span: float = 1.0,
    other_values: Sequence[ValueSpread | None] = (),
    fractions: Sequence[float] = (),
) -> Layout:
    """Packs rows into files by a sample of them.

    Args:
        sample: a sample of the rows to place.
        tree: the tree that they join.
        file_share: rows of one file, as a share of all rows; above 1 when all fit in one.
        beside: rows of the revision in files that stay.
        weight_span: length of the range of weights that the rows come from, as a share of all weights.
        other_values: how the other rows of the table lie over the values of each column; see ``sampled_order``.
        fractions: samples for which bands end too.
    """
    order, sampled = sampled_order(sample, other_values)
    target_rows = max(1, int(sample.rows * file_share))
    packing = pack(sampled.weights, sampled.keys, sample.rows, target_rows, beside, weight_span, fractions)
    return Layout(tree, order, packing, sample.rows, int(target_rows * _LARGEST_FILE) + 1)


def arranged(rows: DataFrame, layout: Layout, columns: IndexColumns) -> DataFrame:
    """The same rows, one Spark partition per file, each sorted along the curve so that pages can be skipped."""
    keyed = rows.withColumn(_KEY, layout.order.key)
    file = layout.order.file(layout.packing, columns.weight, F.col(_KEY), _spread(rows, layout.packing))
    return keyed.repartitionById(layout.packing.files, file).sortWithinPartitions(_KEY).drop(_KEY)


def _spread(rows: DataFrame, packing: Packing) -> Column:
    """A number that differs between rows of the same place, where any place is too large for one file."""
    if not packing.spreads:
        return F.lit(0).cast("bigint")
    atomic = [f.name for f in rows.schema.fields if f.dataType.typeName() not in ("map", "variant", "array", "struct")]
    return F.xxhash64(*[F.col("`" + name.replace("`", "``") + "`") for name in atomic])
