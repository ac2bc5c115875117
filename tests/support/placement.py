"""Checks invariant 2 on the data files themselves, with the pure Python index maths as the judge."""

from collections import Counter
from decimal import Decimal

from pyspark.sql import functions as F
from tables import DeltaTable

from otree.block import BLOCKS_TAG, REVISION_TAG, blocks_from_json
from otree.cube import CubeId
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

DAY = 86_400_000


def check_placement(table: DeltaTable) -> int:
    """Every row of a tagged file lies in exactly one of its blocks, which count and bound it; returns the rows."""
    revisions = table.revisions
    rows = 0
    for file in table.managed.snapshot().log_files.collect():
        tags = file.tags or {}
        if int(tags.get(REVISION_TAG, "0")) == 0:
            continue
        rows += _check_file(table, file.path, revisions[int(tags[REVISION_TAG])], blocks_from_json(tags[BLOCKS_TAG]))
    return rows


def _check_file(table, path, revision, blocks):
    cubes = [CubeId.parse(b.cube_id, revision.dimensions) for b in blocks]
    by_depth = sorted(zip(cubes, blocks, strict=True), key=lambda pair: pair[0].depth)
    assert len(set(cubes)) == len(cubes), f"{path} names a cube twice"
    counts, lowest = Counter(), {}
    for values, weight in read_rows(table, path, revision):
        point = revision.coordinates(values)
        inside = [b for cube, b in by_depth if cube.contains(point)]
        taking = [b for b in inside if b.element_count and b.min_weight <= weight <= b.max_weight]
        assert len(taking) == 1, f"{path}: row {values} of weight {weight} lies in {taking} of {inside}"
        first = next(b for b in inside if weight <= b.max_weight)
        assert first == taking[0], f"{path}: row {values} of weight {weight} belongs to {first}, not to {taking[0]}"
        counts[first.cube_id] += 1
        lowest[first.cube_id] = min(weight, lowest.get(first.cube_id, MAX_WEIGHT))
    for block in blocks:
        assert counts[block.cube_id] == block.element_count, f"{path}: {block} holds {counts[block.cube_id]} rows"
        assert MIN_WEIGHT <= block.min_weight <= block.max_weight <= MAX_WEIGHT
        if block.element_count:
            assert lowest[block.cube_id] == block.min_weight, f"{path}: {block} starts at {lowest[block.cube_id]}"
    return sum(counts.values())


def read_rows(table, path, revision):
    """Indexed values of a data file in the index's units, deleted rows included, each with its weight."""
    from urllib.parse import unquote

    found = table.spark.read.parquet(str(table.path / unquote(path)))
    types = dict(found.dtypes)
    columns = [_in_index_unit(F.col(f"`{c}`"), types[c]).alias(f"c{i}") for i, c in enumerate(revision.columns)]
    weight = F.hash(*[F.col(f"`{c}`") for c in revision.columns]).alias("weight")
    for row in found.select(*columns, weight).collect():
        yield tuple(_plain(v, types[c]) for v, c in zip(row[:-1], revision.columns, strict=True)), row.weight


def _in_index_unit(column, sql_type):
    if sql_type == "timestamp":
        return F.unix_micros(column)
    if sql_type == "date":
        return F.unix_date(column)
    if sql_type.startswith("decimal"):
        return column.cast("string")
    return column


def _plain(value, sql_type):
    if value is None:
        return None
    if sql_type == "timestamp":
        return value // 1000
    if sql_type == "date":
        return value * DAY
    if sql_type.startswith("decimal"):
        return Decimal(value)
    return value
