"""Checks that read the data: every row is in exactly one block of its file, and the counts are correct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.columns.column_names import column_stored_as
from catalog.files.full_paths import full_path, scanned_path
from catalog.jvm.local_rows import local_data_frame
from catalog.properties.index_properties import HASH_TYPES_KEY_PREFIX, hash_type, logical_name
from catalog.table.snapshot import TableSnapshot
from otree.cube import CubeId
from otree.revision import Revision
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.insight.checking import placement
from procedures.insight.checking.problem import ERROR, WARNING, problem, rows_of
from procedures.layout.index_columns import IndexColumns

CHECKS = ("ROW_COUNT", "BLOCK_COUNT", "ROW_OUTSIDE_BLOCKS", "ROW_OUTSIDE_BAND", placement.CHECK, "ROWS_NOT_CHECKED")
COLUMNS = ("path", "revision_id", "stored", "blocks", "symbols", "band", "band_from", "band_to")
"""What is needed of ``TaggedFiles``."""
# Delta's scan keeps its list of files in memory, so a table is read in parts of about this many files.
FILES_AT_ONCE = 10_000
_WHOLE_FILE = -1
_BAND = -2


def row_problems(snapshot: TableSnapshot, sound: DataFrame, location: str) -> Iterator[DataFrame]:
    """Reads the indexed columns of every file without errors, in parts.

    In such a file, no two blocks can contain the same row. All rows are therefore in exactly one block if and only if
    the number of rows in its blocks equals the number of rows in the file.

    Args:
        snapshot: the version to check.
        sound: the indexed files without errors in their tags, with the columns of ``COLUMNS``, which are computed.
        location: root of the table.

    Yields:
        The problems of a part; those that take a job are computed.
    """
    counts = {r.revision_id: r["count"] for r in sound.groupBy("revision_id").count().collect()}
    texts: dict[int, list[str]] = {}
    for r in sound.select("revision_id", F.explode("blocks.cubeId").alias("cube_id")).distinct().collect():
        texts.setdefault(r.revision_id, []).append(r.cube_id)
    for number, revision in snapshot.revisions.items():
        if not revision.transformations or number not in counts:
            continue
        files = sound.where(F.col("revision_id") == number)
        unchecked = _reason_not_to_read(snapshot, revision)
        if unchecked is not None:
            yield _not_checked(files, unchecked)
            continue
        cubes, deepest, are_all = _cells(snapshot, texts.get(number, []), revision)
        if not are_all:
            deep = F.expr(f"exists(blocks, b -> length(b.cubeId) > {deepest} * symbols)")
            yield _not_checked(files.where(deep), "cubes of this depth cannot be checked")
            files = files.where(~deep)
        parts = -(-counts[number] // FILES_AT_ONCE)
        for part in range(parts):
            chosen = files.where(F.pmod(F.hash("path"), F.lit(parts)) == part)
            rows, columns = _rows_of(snapshot, chosen, revision)
            if part == 0:
                yield placement.placement_problems(rows, columns)
            yield _of_part(_placed(rows, columns, deepest), chosen, cubes, location).localCheckpoint()


def _reason_not_to_read(snapshot: TableSnapshot, revision: Revision) -> str | None:
    if not snapshot.has_columns_of(revision):
        return "an indexed column was dropped since"
    written_as = snapshot.configuration.get(f"{HASH_TYPES_KEY_PREFIX}{revision.revision_id}")
    today = ";".join(hash_type(column_stored_as(snapshot.schema, name).type_name) for name in revision.columns)
    if written_as is not None and written_as != today:
        return "a column's type was widened since, which changes the weights of its rows"
    return None


def _not_checked(files: DataFrame, reason: str) -> DataFrame:
    return rows_of(files, [(F.lit(True), problem("ROWS_NOT_CHECKED", WARNING, F.lit(reason)))])


def _cells(snapshot: TableSnapshot, texts: Iterable[str], revision: Revision) -> tuple[DataFrame, int, bool]:
    """Returns the cubes with depth and cell number, the deepest level that is checked, and whether these are all."""
    limit = placement.CELL_BITS // revision.dimensions
    parsed = [CubeId.parse(text, revision.dimensions) for text in texts]
    known = [(cube.text, cube.depth, cube.cell) for cube in parsed if cube.depth <= limit]
    deepest = max((depth for _, depth, _ in known), default=0)
    cubes = local_data_frame(snapshot.spark, known, "cube_id string, depth int, prefix bigint")
    return cubes, deepest, len(known) == len(parsed)


def _of_part(placed: DataFrame, files: DataFrame, cubes: DataFrame, location: str) -> DataFrame:
    named = files.withColumn("full", full_path(F.col("path"), location))
    blocks = (
        named.select("full", F.explode("blocks").alias("b"))
        .select("full", F.col("b.cubeId").alias("cube_id"), "b.minWeight", "b.maxWeight", "b.elementCount")
        .join(F.broadcast(cubes), "cube_id")
        .select("full", "cube_id", "depth", "prefix", "minWeight", "maxWeight", "elementCount")
    )
    # Two additional "blocks" per file count all rows, and all rows of its band, in the same pass.
    whole = _whole_file(named, _WHOLE_FILE, F.lit(MIN_WEIGHT), F.lit(MAX_WEIGHT))
    band_to = F.col("band_to") - 1
    band = _whole_file(named.where("band IS NOT NULL"), _BAND, F.col("band_from").cast("int"), band_to.cast("int"))
    places = blocks.unionByName(whole).unionByName(band)
    row_counts = (
        placed.join(F.broadcast(places), ["full", "depth", "prefix"])
        .where("weight BETWEEN minWeight AND maxWeight")
        .groupBy("full", "depth", "prefix")
        .agg(F.count(F.lit(1)).alias("row_count"))
    )
    counted = places.join(row_counts, ["full", "depth", "prefix"], "left").fillna(0, ["row_count"])
    per_file = counted.groupBy("full").agg(
        F.sum(F.when(F.col("depth") == _WHOLE_FILE, F.col("row_count"))).alias("rows"),
        F.sum(F.when(F.col("depth") >= 0, F.col("row_count"))).alias("placed"),
        F.sum(F.when(F.col("depth") == _BAND, F.col("row_count"))).alias("in_band"),
    )
    identified = named.select("path", "revision_id", "stored", "full")
    return _count_problems(identified.join(counted.where("cube_id IS NOT NULL"), "full")).unionByName(
        _file_problems(identified.join(per_file, "full"))
    )


def _whole_file(files: DataFrame, kind: int, first: Column, last: Column) -> DataFrame:
    return files.select(
        "full",
        F.lit(None).cast("string").alias("cube_id"),
        F.lit(kind).alias("depth"),
        F.lit(0).cast("bigint").alias("prefix"),
        first.alias("minWeight"),
        last.alias("maxWeight"),
        F.col("stored").alias("elementCount"),
    )


def _rows_of(snapshot: TableSnapshot, files: DataFrame, revision: Revision) -> tuple[DataFrame, IndexColumns]:
    adds = snapshot.log_files.join(files.select("path"), "path", "left_semi").select(*snapshot.log_files.columns)
    rows = snapshot.state.rows_stored(adds)
    names = tuple(logical_name(snapshot.schema, column) for column in revision.columns)
    return rows, IndexColumns(snapshot.spark, revision, names)


def _placed(rows: DataFrame, columns: IndexColumns, deepest: int) -> DataFrame:
    """Returns each row once per level, with the number of its cube on that level."""
    levels = max(deepest, 1)
    return (
        rows.select(scanned_path().alias("full"), columns.cell(levels).alias("cell"), columns.weight.alias("weight"))
        .withColumn("depth", F.explode(F.sequence(F.lit(_BAND), F.lit(deepest))))
        .withColumn(
            "prefix",
            F.expr(
                f"CASE WHEN depth < 0 THEN 0L "
                f"ELSE shiftright(cell, CAST({columns.revision.dimensions} * ({levels} - depth) AS INT)) END"
            ),
        )
    )


def _count_problems(counted: DataFrame) -> DataFrame:
    message = F.concat(F.lit("it has "), "row_count", F.lit(" rows of the file, its tag says "), "elementCount")
    return rows_of(
        counted,
        [(F.col("row_count") != F.col("elementCount"), problem("BLOCK_COUNT", ERROR, message, F.col("cube_id")))],
    )


def _file_problems(per_file: DataFrame) -> DataFrame:
    outside = F.concat((F.col("rows") - F.col("placed")).cast("string"), F.lit(" rows are in no block of the file"))
    outside_band = F.concat((F.col("rows") - F.col("in_band")).cast("string"), F.lit(" rows are outside use.band"))
    count = F.concat(F.lit("the file has "), "rows", F.lit(" rows, its statistics say "), "stored")
    return rows_of(
        per_file,
        [
            (F.col("rows") != F.col("placed"), problem("ROW_OUTSIDE_BLOCKS", ERROR, outside)),
            (F.col("rows") != F.col("in_band"), problem("ROW_OUTSIDE_BAND", ERROR, outside_band)),
            (F.col("rows") != F.col("stored"), problem("ROW_COUNT", ERROR, count)),
        ],
    )
