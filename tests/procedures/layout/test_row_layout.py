"""Places on the curve and files, row by row in the JVM, agree with the pure Python index maths."""

import math

import numpy as np
import pytest
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

from otree.curve import bits_per_dimension, hilbert_keys
from otree.packing import pack
from otree.revision import Revision
from otree.transformation import HashTransformation, LinearTransformation
from otree.transformer import Transformer
from procedures.layout import row_measures
from procedures.layout.index_columns import IndexColumns
from procedures.layout.row_layout import sampled_order
from procedures.layout.row_measures import sample_of

SPACES = {
    "id": ("LongDataType", LinearTransformation(0, 10**6, 0, "LongDataType")),
    "x": ("DoubleDataType", LinearTransformation(0.0, 1.0, 0.0, "DoubleDataType")),
    "s": ("StringDataType", HashTransformation(7)),
}


@pytest.fixture(params=["compiled", "interpreted"])
def evaluation(request, set_conf):
    compiled = request.param == "compiled"
    set_conf("spark.sql.codegen.wholeStage", str(compiled).lower())
    set_conf("spark.sql.codegen.factoryMode", "CODEGEN_ONLY" if compiled else "NO_CODEGEN")


def _columns(spark, names):
    transformers = tuple(Transformer("hashing" if n == "s" else "linear", n, SPACES[n][0]) for n in names)
    return IndexColumns(spark, Revision(1, 1, "t", 100, transformers, tuple(SPACES[n][1] for n in names)), names)


def _rows(spark):
    odd = spark.createDataFrame(
        [
            (None, None, None, None),
            (5, math.nan, 1, ""),
            (6, -math.inf, 1, "\x00"),
            (7, math.inf, 1, "é"),
            (8, -0.0, 1, "z"),
        ],
        NUMBERS,
    )
    return numbers(spark, 3000).union(odd).union(odd)


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize("names", [("x",), ("x", "s"), ("id", "x", "s")], ids="".join)
def test_keys_and_files(spark, evaluation, names):
    rows = _rows(spark).localCheckpoint()
    columns = _columns(spark, names)
    order, sample = sampled_order(sample_of(rows, 3010, columns, 0.1)[0])
    packing = pack(sample.weights, sample.keys, 3010, 300)
    assert packing.files > 5
    found = rows.select(
        *[value.alias(f"v{i}") for i, value in enumerate(order.values)],
        columns.weight.alias("w"),
        order.key.alias("key"),
        F.xxhash64("id", "y").alias("spread"),
        order.file(packing, columns.weight, order.key, F.xxhash64("id", "y")).alias("file"),
    ).collect()
    codes = [
        [0 if r[f"v{i}"] is None else int(ranks.codes_of(_single(r[f"v{i}"]))[0]) for r in found]
        for i, ranks in enumerate(order.ranks)
    ]
    keys = hilbert_keys([np.array(axis, np.int32) for axis in codes], bits_per_dimension(len(names)))
    assert [r.key for r in found] == keys.tolist()
    assert [r.file for r in found] == [packing.file_of(r.w, r.key, r.spread) for r in found]


def _single(value):
    if isinstance(value, float):
        return np.array([value])
    boxed = np.empty(1, object)
    boxed[0] = bytes(value)
    return boxed


@pytest.mark.slow
def test_strings_that_hash_still_lie_together(spark, new_table):
    """A hashing column's files have narrow ranges, which Delta's own statistics then prune by."""
    table = new_table(NUMBERS, index="s,x", file_bytes=8_000)
    table.append(numbers(spark, 4000).withColumn("s", F.format_string("%05d", F.pmod(F.xxhash64("id"), F.lit(1000)))))
    table.index()
    assert len(table.files) > 8
    ranges = [(f.stats["minValues"]["s"], f.stats["maxValues"]["s"]) for f in table.files]
    assert min(int(high) - int(low) for low, high in ranges) < 500


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.9, 0.0])
def test_no_file_is_above_two_targets(spark, new_table, share):
    """However many rows have the same indexed values, so that neither weight nor curve tells them apart."""
    table = new_table(NUMBERS, index="y", file_bytes=10_000)
    table.append(numbers(spark, 6000).withColumn("y", F.when(F.col("x") < share, 7).otherwise(F.col("y"))))
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    assert len(table.files) > 5
    assert max(f.size for f in table.files) < 2 * 10_000


@pytest.mark.slow
def test_rows_of_an_indexed_table_are_sampled_evenly(spark, new_table, monkeypatch):
    """The sample that files are cut by is not turned into one by weight, which would hold low weights only."""
    monkeypatch.setattr(row_measures, "_SAMPLE_ROWS", 500)
    monkeypatch.setattr(row_measures, "_SAMPLE_ROWS_PER_FILE", 20)
    monkeypatch.setattr(row_measures, "_SAMPLE_ROWS_PER_CUBE", 10)
    source = new_table(NUMBERS, index="id,x").append(numbers(spark, 4000)).index()
    sample, _ = row_measures.sample_of(source.data, 4000, _columns(spark, ("id", "x")), 0.1)
    assert sample.rows == 4000
    assert 300 < len(sample.weights) < 700
    assert abs(float(np.mean(sample.weights.astype(float)))) < 0.1 * 2**32
