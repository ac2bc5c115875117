"""Checks of the log: tags, cubes, weights, counts, thresholds, and the existence of files."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.files.block_rows import BLOCKS_SCHEMA
from catalog.files.full_paths import full_path, one_spelling
from catalog.jvm.local_rows import local_data_frame
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG
from otree.cube import BITS_PER_SYMBOL, SYMBOLS, symbols_per_level
from otree.errors import IndexFormatError
from otree.overfull import OVERFULL_FACTOR
from otree.revision import LAST_REVISION_KEY, REVISION_KEY_PREFIX, newest_revision
from procedures.insight.checking.problem import ERROR, SCHEMA, WARNING, problem, rows_of

CHECKS = (
    "TAGS_UNREADABLE",
    "HALF_TAGGED",
    "REVISION_UNKNOWN",
    "CUBE_INVALID",
    "CUBE_TWICE",
    "WEIGHTS_REVERSED",
    "BLOCKS_OVERLAP",
    "COUNT_MISMATCH",
    "BAND_MISMATCH",
    "THRESHOLD_DECREASES",
    "CUBE_OVERFULL",
    "FILE_MISSING",
    "REVISION_UNREADABLE",
)
_FIELDS = ("cubeId", "minWeight", "maxWeight", "elementCount")


@dataclass(frozen=True)
class TaggedFiles:
    """The live files of a snapshot with their parsed tags, which may be invalid.

    Attributes:
        files: path, stored (numRecords, including deleted rows), text and number of the revision, text, raw maps and
            typed structs of the blocks, indexed BOOLEAN (whether queries treat the file as indexed), text and both
            ends of the band, and for known revisions the cube pattern and desired rows.
    """

    files: DataFrame

    @classmethod
    def of(cls, snapshot: TableSnapshot) -> TaggedFiles:
        """Parses the tags; NULL if they cannot be parsed."""
        tag = F.col("tags")
        raw = F.from_json(tag[BLOCKS_TAG], "array<map<string,string>>")
        known = [
            (
                number,
                cube_pattern(revision.dimensions),
                symbols_per_level(revision.dimensions),
                revision.desired_cube_size,
            )
            for number, revision in snapshot.revisions.items()
            if number > 0 and revision.transformations
        ]
        spaces = local_data_frame(
            snapshot.spark, known, "revision_id bigint, pattern string, symbols int, desired bigint"
        )
        files = snapshot.log_files.select(
            "path",
            F.get_json_object("stats", "$.numRecords").try_cast("bigint").alias("stored"),
            tag[REVISION_TAG].alias("revision_text"),
            tag[REVISION_TAG].try_cast("bigint").alias("revision_id"),
            tag[BLOCKS_TAG].alias("blocks_text"),
            raw.alias("raw"),
            F.from_json(tag[BLOCKS_TAG], BLOCKS_SCHEMA).alias("blocks"),
            snapshot.reader.blocks_of_tags().isNotNull().alias("indexed"),
            tag[BAND_TAG].alias("band"),
            F.try_element_at(F.split(tag[BAND_TAG], ","), F.lit(1)).try_cast("bigint").alias("band_from"),
            F.try_element_at(F.split(tag[BAND_TAG], ","), F.lit(2)).try_cast("bigint").alias("band_to"),
        )
        return cls(files.join(F.broadcast(spaces), "revision_id", "left"))


def cube_pattern(dimensions: int) -> str:
    """Returns the regular expression of the cube ids of a space: whole levels, known symbols, unused bits zero."""
    width = symbols_per_level(dimensions)
    unused = width * BITS_PER_SYMBOL - dimensions
    last = "".join(SYMBOLS[value] for value in range(0, len(SYMBOLS), 1 << unused))
    return f"^([A-Za-z0-9+/]{{{width - 1}}}[{last}])*$"


def tag_problems(tagged: TaggedFiles) -> DataFrame:
    """Returns the problems that are visible in the tags of a single file."""
    number, blocks = F.col("revision_id"), F.col("blocks")
    has_blocks = F.col("blocks_text").isNotNull()
    indexed = number > 0
    readable = indexed & has_blocks & ~_unreadable()
    filled = F.filter(blocks, lambda b: b["elementCount"] > 0)
    cubes = F.transform(blocks, lambda b: b["cubeId"])
    reversed_ = F.filter(blocks, lambda b: b["minWeight"] > b["maxWeight"])
    invalid = F.filter(cubes, lambda c: ~F.rlike(c, F.col("pattern")))
    overlap = F.filter(filled, lambda b: F.exists(filled, lambda above: _above(above, b)))
    # Tags that pass the specific checks but that queries reject: a number in place of a string, a repeated field.
    fits = F.col("pattern").isNotNull() & (F.size(reversed_) == 0) & (F.size(invalid) == 0)
    least = F.array_min(F.transform(filled, lambda b: b["minWeight"]))
    most = F.array_max(F.transform(filled, lambda b: b["maxWeight"]))
    within = (F.col("band_from") == least) & (F.col("band_from") < F.col("band_to")) & (F.col("band_to") - 1 <= most)
    elsewhere = F.filter(filled, lambda b: b["minWeight"] >= F.col("band_to"))
    total = F.aggregate(blocks, F.lit(0).cast("bigint"), lambda sum_, b: sum_ + b["elementCount"])
    return rows_of(
        tagged.files,
        [
            (
                F.col("revision_text").isNotNull()
                & (number.isNull() | (number < 0) | (F.col("revision_text") != number.cast("string"))),
                problem(
                    "TAGS_UNREADABLE", ERROR, F.concat(F.lit("revision = "), "revision_text", F.lit(" is not a number"))
                ),
            ),
            (
                indexed & has_blocks & (_unreadable() | (fits & ~F.col("indexed"))),
                problem("TAGS_UNREADABLE", ERROR, F.concat(F.lit("blocks = "), F.substring("blocks_text", 1, 200))),
            ),
            (
                indexed & ~has_blocks,
                problem("HALF_TAGGED", ERROR, F.lit("it has a revision but no blocks")),
            ),
            (
                (number.isNull() & F.col("revision_text").isNull() | (number == 0)) & has_blocks,
                problem("HALF_TAGGED", ERROR, F.lit("it has blocks but no revision")),
            ),
            (
                # Files that were merged without an index have tags too, but no weights.
                F.col("revision_text").isNull() & ~has_blocks & F.col("band").isNotNull(),
                problem("HALF_TAGGED", ERROR, F.lit("it has use.band but no revision")),
            ),
            (
                indexed & F.col("pattern").isNull(),
                problem("REVISION_UNKNOWN", ERROR, F.lit("the table properties have no such revision with data")),
            ),
            (
                readable & (F.size(invalid) > 0),
                problem(
                    "CUBE_INVALID", ERROR, F.lit("not a cube of its revision"), F.try_element_at(invalid, F.lit(1))
                ),
            ),
            (
                readable & (F.size(F.array_distinct(cubes)) < F.size(cubes)),
                problem("CUBE_TWICE", ERROR, F.lit("two blocks of the file belong to the same cube")),
            ),
            (
                readable & (F.size(reversed_) > 0),
                problem(
                    "WEIGHTS_REVERSED",
                    ERROR,
                    F.lit("minWeight is above maxWeight"),
                    F.try_element_at(reversed_, F.lit(1))["cubeId"],
                ),
            ),
            (
                readable & (F.size(overlap) > 0),
                problem(
                    "BLOCKS_OVERLAP",
                    ERROR,
                    F.lit("its weights overlap those of a block of a parent cube in the same file"),
                    F.try_element_at(overlap, F.lit(1))["cubeId"],
                ),
            ),
            (
                readable & (total != F.col("stored")),
                problem(
                    "COUNT_MISMATCH",
                    ERROR,
                    F.concat(F.lit("its blocks have "), total, F.lit(" rows, its statistics "), "stored"),
                ),
            ),
            (
                readable & F.col("band").isNotNull() & ~F.coalesce(within & (F.size(elsewhere) == 0), F.lit(False)),
                problem(
                    "BAND_MISMATCH", ERROR, F.concat(F.lit("use.band = "), "band", F.lit(" does not match its blocks"))
                ),
            ),
        ],
    )


def _unreadable() -> Column:
    """Whether the tag is not an array of objects with exactly the format's fields; ``replicated`` is tolerated."""
    blocks, raw = F.col("blocks"), F.col("raw")
    broken = F.exists(
        blocks,
        lambda b: (
            b.isNull()
            | b["cubeId"].isNull()
            | b["minWeight"].isNull()
            | b["maxWeight"].isNull()
            | b["elementCount"].isNull()
            | (b["elementCount"] < 0)
        ),
    )
    allowed = F.array(*[F.lit(name) for name in (*_FIELDS, "replicated")])
    has_unknown_field = F.exists(raw, lambda fields: F.size(F.array_except(F.map_keys(fields), allowed)) > 0)
    empty = F.size(blocks) == 0
    return blocks.isNull() | raw.isNull() | F.coalesce(broken | has_unknown_field | empty, F.lit(True))


def _above(above: Column, below: Column) -> Column:
    """Whether one block's cube contains the other's and their weights overlap, so that a row could be in both."""
    holds = below["cubeId"].startswith(above["cubeId"]) & (below["cubeId"] != above["cubeId"])
    return holds & (below["minWeight"] <= above["maxWeight"]) & (above["minWeight"] <= below["maxWeight"])


def threshold_problems(tagged: TaggedFiles) -> DataFrame:
    """Returns the cubes whose current threshold is below that of their parent.

    Readers that walk the tree stop too early there. Deleting whole files can cause this, because the remaining blocks
    of the parent then have an older threshold. Readers that use blocks, such as this implementation, are not affected.
    """
    blocks = tagged.files.where(F.col("pattern").isNotNull() & ~_unreadable()).select(
        "path", "revision_id", "symbols", F.explode("blocks").alias("b")
    )
    cubes = blocks.groupBy("revision_id", "symbols", F.col("b.cubeId").alias("cube_id")).agg(
        F.min("b.maxWeight").alias("threshold"), F.min_by("path", "b.maxWeight").alias("path")
    )
    parent = F.expr("left(cube_id, length(cube_id) - symbols)")
    children = cubes.where(F.length("cube_id") >= F.col("symbols")).withColumn("parent", parent)
    parents = cubes.select(
        F.col("revision_id"), F.col("cube_id").alias("parent"), F.col("threshold").alias("parent_threshold")
    )
    below = children.join(parents, ["revision_id", "parent"])
    message = F.concat(
        F.lit("its threshold "), "threshold", F.lit(" is below "), "parent_threshold", F.lit(" of the cube above it")
    )
    return rows_of(
        below,
        [
            (
                F.col("threshold") < F.col("parent_threshold"),
                problem("THRESHOLD_DECREASES", WARNING, message, F.col("cube_id")),
            )
        ],
    )


def overfull_problems(tagged: TaggedFiles) -> DataFrame:
    """Returns the cubes that hold more than twice the desired rows; samples read more of them than they need."""
    blocks = tagged.files.where("indexed").select("path", "revision_id", "desired", F.explode("blocks").alias("b"))
    cubes = blocks.groupBy("revision_id", "desired", F.col("b.cubeId").alias("cube_id")).agg(
        F.sum("b.elementCount").alias("elements"), F.max_by("path", "b.elementCount").alias("path")
    )
    message = F.concat(
        F.lit("it holds "), "elements", F.lit(f" rows, more than {OVERFULL_FACTOR} times the desired "), "desired"
    )
    return rows_of(
        cubes,
        [
            (
                F.col("elements") > F.col("desired") * OVERFULL_FACTOR,
                problem("CUBE_OVERFULL", WARNING, message, F.col("cube_id")),
            )
        ],
    )


def revision_problems(snapshot: TableSnapshot) -> DataFrame:
    """Returns unreadable properties of revisions, and a missing newest revision."""
    problems = dict(snapshot.stored_revisions.unreadable)
    try:
        newest_revision(snapshot.configuration, snapshot.stored_revisions)
    except IndexFormatError as error:
        if not any(f"'{key}'" in str(error) for key in problems):
            problems[LAST_REVISION_KEY] = str(error)
    rows = [
        ("REVISION_UNREADABLE", ERROR, None, _number(key), None, f"table property '{key}': {reason}")
        for key, reason in sorted(problems.items())
    ]
    return local_data_frame(snapshot.spark, rows, SCHEMA)


def _number(key: str) -> int | None:
    number = key.removeprefix(REVISION_KEY_PREFIX)
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None


def missing_files(table: ManagedTable, snapshot: TableSnapshot) -> DataFrame:
    """Returns the files of the log that do not exist below the table, and those whose deletion vectors do not.

    Lists the folder once, in parallel. Files outside the folder, as in a shallow clone, are not checked.
    """
    listed = table.handle.list_files(table.spark).select(one_spelling(F.col("path")).alias("full"))
    root = one_spelling(F.lit(table.root.rstrip("/") + "/"))
    places = table.handle.versions(snapshot.spark).places(F.struct("path", "size", "deletionVector"))
    vector = F.when(F.isnotnull("deletionVector"), one_spelling(F.try_element_at(places, F.lit(2))["_1"]))
    rows = snapshot.reader.rows_of(snapshot.log_files.withColumn("vector", vector), "vector")
    names = [(full_path(F.col("path"), table.root), "file"), (F.col("vector"), "deletion vector")]
    named = F.array(*[F.struct(full.alias("full"), F.lit(kind).alias("kind")) for full, kind in names])
    files = rows.select("path", F.col("revision").alias("revision_id"), F.inline(named)).where(
        F.col("full").startswith(root)
    )
    message = F.concat(F.lit("the log names a "), "kind", F.lit(" that does not exist"))
    return rows_of(
        files.join(listed, "full", "left_anti"),
        [(F.lit(True), problem("FILE_MISSING", ERROR, message))],
    )
