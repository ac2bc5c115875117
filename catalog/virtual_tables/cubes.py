"""``<table>.cubes``: one row per cube that has blocks in live files."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from catalog.jvm.local_rows import local_data_frame
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from catalog.virtual_tables.spaces import box, column_names
from catalog.virtual_tables.virtual_table import VirtualTable
from otree.cube import CubeId
from otree.errors import IndexFormatError

_SCHEMA = (
    "revision_id bigint, cube_id string, depth int, max_weight int, element_count bigint, blocks bigint, "
    "files bigint, box array<struct<column:string,from:string,to:string>>"
)


def _rows(table: ManagedTable) -> DataFrame:
    snapshot = table.snapshot()
    # The tree is small in comparison with the file list: one row per cube and revision.
    cubes = (
        snapshot.blocks()
        .groupBy("revision", "cube_id")
        .agg(
            F.min("max_weight").alias("max_weight"),
            F.sum("element_count").alias("element_count"),
            F.count(F.lit(1)).alias("blocks"),
            F.count_distinct("path").alias("files"),
        )
        .orderBy("revision", "cube_id")
        .collect()
    )
    return local_data_frame(table.spark, [_row(snapshot, cube) for cube in cubes], _SCHEMA)


def _row(snapshot: TableSnapshot, cube: Row) -> tuple[Any, ...]:
    revision = snapshot.revisions.get(cube.revision)
    depth, borders = None, None
    if revision is not None:
        try:
            cube_id = CubeId.parse(cube.cube_id, revision.dimensions)
            depth, borders = cube_id.depth, box(revision, cube_id, column_names(snapshot.schema, revision.columns))
        except IndexFormatError:
            # Not a cube of this revision, which use.check reports; the row is shown as far as it can be read.
            depth, borders = None, None
    return (
        cube.revision,
        cube.cube_id,
        depth,
        cube.max_weight,
        cube.element_count,
        cube.blocks,
        cube.files,
        borders,
    )


CUBES = VirtualTable("cubes", _SCHEMA, _rows)
