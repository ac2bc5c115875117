"""Decides where rows go: the tree that a group's rows join, and the file of each cube and weight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from otree.cube import CubeId
from otree.packing import Packing, pack
from otree.tree import CubeState, OrdinalTable, Tree
from procedures.rewrite.index_columns import IndexColumns

# Cells of one more level than this would not fit a long; skewed data needs some levels beyond the even depth.
_CELL_BITS = 60
_EXTRA_LEVELS = 6
# Cubes with fewer rows than this share of a cube's size are left out of the counts, which bounds what is collected.
_COUNTED_SHARE = 10
# Cubes may grow by this factor before an append lowers their threshold or splits them.
_GROWTH_SLACK = 1.25


@dataclass(frozen=True)
class Layout:
    """Where each row goes.

    Attributes:
        tree: thresholds of the cubes.
        ordinals: the same as dense tables.
        packing: file of each cube and weight.
        rows: number of rows counted on the way.
    """

    tree: Tree
    ordinals: OrdinalTable
    packing: Packing
    rows: int


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


def lay_out(rows: DataFrame, tree: Tree, columns: IndexColumns, file_share: float) -> Layout:
    """Counts the rows of each cube and packs them into files.

    Args:
        rows: the rows to place.
        tree: the tree that they join.
        columns: their place in the revision.
        file_share: rows of one file, as a share of all rows; above 1 when all fit in one.
    """
    ordinals = tree.ordinals()
    counted = rows.groupBy(columns.cube(ordinals).alias("cube")).count().collect()
    counts = {ordinals.cube_of(r.cube): int(r["count"]) for r in counted}
    total = sum(counts.values())
    return Layout(tree, ordinals, pack(counts, tree, max(1, int(total * file_share))), total)


def arranged(rows: DataFrame, layout: Layout, columns: IndexColumns) -> DataFrame:
    """The same rows, one Spark partition per file, each sorted along the curve so that pages can be skipped."""
    dimensions, size = columns.revision.dimensions, columns.revision.desired_cube_size
    depth = cell_depth(dimensions, layout.rows, size)
    placed = rows.repartitionById(max(layout.packing.files, 1), columns.file(layout.ordinals, layout.packing))
    return placed.sortWithinPartitions(columns.cell(depth))
