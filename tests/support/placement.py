"""Checks invariant 2 on the data files themselves, with the pure Python index maths as the judge."""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import unquote

from pyspark.sql import functions as F
from tables import DeltaTable

from otree.cube import CubeId
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

DAY = 86_400_000


def check_placement(table: DeltaTable) -> int:
    """Every row of a tagged file lies in exactly one of its blocks, which count and bound it; returns the rows."""
    revisions = table.revisions
    of_revision = defaultdict(dict)
    for file in table.files:
        if file.revision:
            of_revision[file.revision][unquote(file.path).rsplit("/")[-1]] = file
    checked = 0
    for number, files in of_revision.items():
        rows = read_rows(table, [f.path for f in files.values()], revisions[number])
        for name, file in files.items():
            checked += _check_file(name, rows[name], revisions[number], file.blocks)
        assert set(rows) <= set(files)
    return checked


def _check_file(path, rows, revision, blocks):
    cubes = [CubeId.parse(b.cube_id, revision.dimensions) for b in blocks]
    by_depth = sorted(zip(cubes, blocks, strict=True), key=lambda pair: pair[0].depth)
    assert len(set(cubes)) == len(cubes), f"{path} names a cube twice"
    counts, lowest = Counter(), {}
    for values, weight in rows:
        point = revision.coordinates(values)
        inside = [b for cube, b in by_depth if CubeId.of_point(point, cube.depth) == cube]
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


def read_rows(table, paths, revision):
    """Rows of data files by file name, deleted ones included: the values in the index's units, and the weight."""
    found = table.spark.read.parquet(*[str(table.path / unquote(path)) for path in paths])
    columns = [_stored_column(found, c) for c in revision.columns]
    types = [found.select(c).dtypes[0][1] for c in columns]
    # A hashed single is placed by its own digits, which its double does not tell.
    types = [
        "text of float" if kind == "float" and t.kind == "hashing" else kind
        for kind, t in zip(types, revision.transformers, strict=True)
    ]
    selected = found.select(
        F.col("_metadata.file_name").alias("file"),
        F.hash(*columns).alias("weight"),
        *[_in_index_unit(c, t).alias(f"c{i}") for i, (c, t) in enumerate(zip(columns, types, strict=True))],
    )
    rows = defaultdict(list)
    for file, weight, *values in selected.collect():
        rows[unquote(file)].append((tuple(_plain(v, t) for v, t in zip(values, types, strict=True)), weight))
    return rows


def _stored_column(rows, name):
    parts = [name] if name in rows.columns else name.split(".")
    return F.col(".".join("`" + part.replace("`", "``") + "`" for part in parts))


def _in_index_unit(column, sql_type):
    if sql_type == "timestamp":
        return F.unix_micros(column)
    if sql_type == "date":
        return F.unix_date(column)
    if sql_type.startswith("decimal") or sql_type == "text of float":
        return column.cast("string")
    return column


def _plain(value, sql_type):
    if value is None:
        return None
    if sql_type == "timestamp":
        return value // 1000
    if sql_type == "timestamp_ntz":
        return (value - datetime(1970, 1, 1)) // timedelta(milliseconds=1)  # noqa: DTZ001 - it has no zone
    if sql_type == "date":
        return value * DAY
    if sql_type == "boolean":
        return int(value)
    if sql_type == "binary":
        return bytes(value)
    if sql_type.startswith("decimal"):
        return Decimal(value)
    return value
