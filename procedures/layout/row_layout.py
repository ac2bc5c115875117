"""Decides where rows go: the tree that a group's rows join, and the file of each weight and place on the curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from otree.cube import CubeId
from otree.packing import Packing, pack
from otree.tree import CubeState, Tree
from procedures.layout.curve_order import CurveOrder, sampled_order
from procedures.layout.index_columns import IndexColumns

# Cells of one more level than this would not fit a long; skewed data needs some levels beyond the even depth.
_CELL_BITS = 60
_EXTRA_LEVELS = 6
# Cubes with fewer rows than this share of a cube's size are left out of the counts, which bounds what is collected.
_COUNTED_SHARE = 10
# Cubes may grow by this factor before an append lowers their threshold or splits them.
_GROWTH_SLACK = 1.25
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


def cell_depth(dimensions: int, rows: int, cube_size: int) -> int:
    """Levels of the cells that are counted: as deep as even data needs, and some more for skew."""
    even = math.ceil(math.log2(max(rows / cube_size, 1)) / dimensions)
    return max(1, min(_CELL_BITS // dimensions, even + _EXTRA_LEVELS))


def grown_tree(rows: DataFrame, count: int, columns: IndexColumns, existing: Mapping[CubeId, CubeState]) -> Tree:
    """Estimates the tree of existing cubes and new rows together, in one pass over the indexed columns.

    The result depends neither on the order of the rows nor on their partitions.

    Args:
        rows: the rows to add.
        count: how many they are.
        columns: their place in the revision.
        existing: live cubes of the revision.
    """
    revision = columns.revision
    dimensions, size = revision.dimensions, revision.desired_cube_size
    if existing and count * _COUNTED_SHARE <= size:
        return Tree.current(dimensions, existing)
    depth = cell_depth(dimensions, count, size)
    cells = rows.groupBy(columns.cell(depth).alias("cell")).count()
    level = F.explode(F.sequence(F.lit(1), F.lit(depth))).alias("level")
    prefixes = (
        cells.select("cell", "count", level)
        .withColumn("prefix", F.expr(f"shiftright(cell, CAST({dimensions} * ({depth} - level) AS INT))"))
        .groupBy("level", "prefix")
        .agg(F.sum("count").alias("count"))
        .where(F.col("count") * _COUNTED_SHARE > size)
    )
    counts = {CubeId.of_cell(r.prefix, dimensions, r.level): int(r["count"]) for r in prefixes.collect()}
    counts[CubeId.root(dimensions)] = count
    return Tree.estimate(dimensions, counts, existing, size, depth, _GROWTH_SLACK)


def lay_out(
    rows: DataFrame, count: int, tree: Tree, columns: IndexColumns, file_share: float, beside: int = 0
) -> Layout:
    """Packs rows into files by a sample of them.

    Args:
        rows: the rows to place.
        count: how many they are.
        tree: the tree that they join.
        columns: their place in the revision.
        file_share: rows of one file, as a share of all rows; above 1 when all fit in one.
        beside: rows of the revision in files that stay.
    """
    order, sample = sampled_order(rows, count, columns, file_share)
    target_rows = max(1, int(count * file_share))
    packing = pack(sample.weights, sample.keys, count, target_rows, beside)
    return Layout(tree, order, packing, count, int(target_rows * _LARGEST_FILE) + 1)


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
