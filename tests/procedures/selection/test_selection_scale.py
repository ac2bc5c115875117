"""A million files: the list is read once, and strategies choose from it."""

from functools import partial
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from catalog.files import version_files
from catalog.files.version_files import KeptTables
from catalog.jvm.table_state import LogExtent
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision, configuration_of
from otree.transformation import LinearTransformation
from otree.transformer import Transformer
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.planner import TablePlanner

FILES = 1_000_000
SCHEMA = StructType().add("id", "long").add("x", "double").add("y", "double")
CODES = ("A", "Q", "g", "w")


class _Log:
    """The files of a table's state, without a table."""

    def __init__(self, files):
        self._files = files
        self.reads = 0

    def files(self):
        return self._files

    def files_in(self, _):
        self.reads += 1
        return self._files

    def extent(self):
        return LogExtent(FILES, 500 * FILES)

    def listed(self):
        return None


def _log(spark):
    """One unindexed file in a hundred; the others of two cubes each, in bands, of as many writes as there are files."""
    number = F.col("id")
    cube = F.concat(*[F.element_at(F.array(*map(F.lit, CODES)), 1 + (number / 4**i).cast("int") % 4) for i in range(4)])
    # Half of the files of the lower weights have blocks above the thresholds of their cubes.
    last = F.when(number % 32 < 8, 0).otherwise(MAX_WEIGHT).cast("string")
    first = (F.lit(MIN_WEIGHT) + (number % 16).cast("bigint") * 2**28 + 7).cast("string")
    block = [
        F.concat(
            F.lit('{"cubeId":"'), of, F.lit('","minWeight":'), first,
            F.lit(',"maxWeight":'), last, F.lit(',"elementCount":'),
            (number % 900 + 1).cast("string"), F.lit("}"),
        )
        for of in (F.lit(""), cube)
    ]  # fmt: skip
    tags = F.create_map(
        F.lit("revision"), F.when(number % 100 == 0, "0").otherwise("1"),
        F.lit("blocks"), F.when(number % 100 == 0, "[]").otherwise(
            F.concat(F.lit("["), F.concat_ws(",", *block), F.lit("]"))
        ),
        F.lit("use.write"), F.concat(F.lit("w"), number),
        F.lit("use.band"), F.concat(first, F.lit(f",{MAX_WEIGHT}")),
    )  # fmt: skip
    vector = "struct<storageType:string,pathOrInlineDv:string,offset:int,cardinality:bigint>"
    return spark.range(0, FILES, 1, 4).select(
        F.concat(F.lit("part-"), number).alias("path"),
        F.lit(None).cast("map<string,string>").alias("partitionValues"),
        (number % 1000 + 16_000_000).alias("size"),
        (number % 100_000).alias("modificationTime"),
        F.concat(
            F.lit('{"numRecords":50000,"minValues":{"id":'), number,
            F.lit('},"maxValues":{"id":'), number + 9, F.lit("}}"),
        ).alias("stats"),
        tags.alias("tags"),
        F.lit(None).cast(vector).alias("deletionVector"),
    )  # fmt: skip


CALLS = (
    ({"strategy": "UnindexedFiles"}, 625),
    ({"strategy": "LeveledCompaction"}, 63),
    ({"strategy": "CubeDefragmentation"}, 63),
    ({"strategy": "SamplingOverheadReduction", "options": {"fraction": "0.01"}}, 63),
    ({"strategy": "UnindexedFiles", "where": "id BETWEEN 500 AND 1000"}, 6),
)


def _same(snapshot):
    return snapshot


@pytest.mark.slow
def test_a_million_files(spark, set_conf, monkeypatch):
    set_conf("spark.sql.shuffle.partitions", "4")
    transformers = tuple(Transformer("linear", name, "DoubleDataType") for name in ("x", "y"))
    spaces = tuple(LinearTransformation(0.0, 1.0, 0.0, "DoubleDataType") for _ in transformers)
    properties = configuration_of([Revision(1, 0, "t", 100_000, transformers, spaces)])
    properties["use.index.columns"] = "x,y"
    state, kept = _Log(_log(spark)), KeptTables(10**9)
    monkeypatch.setattr(version_files, "_KEPT_TABLES", kept)
    for given, files in CALLS:
        snapshot = TableSnapshot(spark, 1, "t", properties, SCHEMA, (), 168.0, state, "table")
        table = SimpleNamespace(snapshot=partial(_same, snapshot), spark=spark, name="t")
        (group,) = TablePlanner(table, OptimizeSettings.of({"table": "t", **given})).plan(PlanRequest()).groups
        assert abs(len(group.files) - files) <= 1, given
    # The list was read once.
    assert state.reads == 1
