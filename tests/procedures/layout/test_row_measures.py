"""One look at rows that join the newest revision: exact ranges and counts, and a sample, from one Spark job."""

import uuid

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tables import NUMBERS, checksum, numbers

from otree.tree import Tree
from procedures.layout import row_measures
from procedures.layout.row_layout import grown_tree
from procedures.layout.row_measures import RowSample, measure_columns, measure_rows, sample_rows
from procedures.layout.target import revision_for


def jobs_of(spark, act):
    group = uuid.uuid4().hex
    spark.sparkContext.setJobGroup(group, "counted")
    try:
        result = act()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    return result, len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def separate(rows, snapshot):
    found = snapshot.index_configuration
    return measure_columns(rows, found.transformers, found.logical_columns, found.declared, snapshot.latest_revision)


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(row_measures, "_SAMPLE_ROWS", 500)
    monkeypatch.setattr(row_measures, "_SAMPLE_ROWS_PER_FILE", 1)
    monkeypatch.setattr(row_measures, "_SAMPLE_ROWS_PER_CUBE", 1)


@pytest.fixture(scope="module")
def snapshot(spark, shared_table):
    """A table that is indexed by x, y and s, with four rows of no finite value."""
    table = shared_table(NUMBERS, index="x,y,s", cube_size=100)
    return table.append(numbers(spark, 1000)).index().managed.snapshot()


def odd_rows(spark):
    return spark.createDataFrame(
        [(1, float("nan"), None, "a"), (2, float("inf"), 5, None), (3, -float("inf"), 5, "b"), (4, None, None, None)],
        NUMBERS,
    )


def test_one_job_tells_what_separate_looks_tell(spark, snapshot):
    rows = numbers(spark, 900, start=5000).union(odd_rows(spark)).localCheckpoint()
    seen, jobs = jobs_of(spark, lambda: measure_rows(rows, snapshot, snapshot.index_configuration, 904))
    assert jobs == 1
    apart = separate(rows, snapshot)
    assert [(s.minimum, s.maximum, s.declared) for s in seen.stats] == [
        (s.minimum, s.maximum, s.declared) for s in apart.stats
    ]
    assert seen.weights.rows == apart.weights.rows == 904
    weights = {r.w for r in rows.select(F.hash("x", "y", "s").alias("w")).collect()}
    assert seen.weights.distinct_weights == len(weights)
    assert set(seen.sample.weights.tolist()) == weights
    assert seen.sample.placed.scale == 1.0


def test_ranges_are_those_of_all_rows(spark, snapshot, small_samples):
    """One value outside the revision, which no sample has, still makes a new revision."""
    rows = numbers(spark, 20_000).union(spark.createDataFrame([(5, 77.5, 3, "a")], NUMBERS))
    found = snapshot.index_configuration
    seen = measure_rows(rows, snapshot, found, 20_001)
    assert 300 < len(seen.sample.table) < 700
    assert max(seen.sample.table.column("v0").to_pylist()) < 1
    assert (seen.weights.rows, seen.stats[0].maximum) == (20_001, 77.5)
    revision, new = revision_for(snapshot, found, seen.stats, 100, "/t", seen.weights)
    assert new
    assert revision.transformations[0].covers(seen.stats[0])
    inside = numbers(spark, 20_000).withColumns({"x": F.col("x") / 2 + 0.2, "y": F.lit(500)})
    within = measure_rows(inside, snapshot, found, 20_000)
    assert not revision_for(snapshot, found, within.stats, 100, "/t", within.weights)[1]


def test_the_number_of_rows_may_be_wrong(spark, snapshot):
    rows = numbers(spark, 600)
    for expected in (1, 100_000_000):
        seen = measure_rows(rows, snapshot, snapshot.index_configuration, expected)
        assert seen.weights.rows == 600
        grown_tree(seen.sample, Tree(3, {}), {})


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_rows_of_any_query_are_counted(spark, snapshot, set_conf, adaptive):
    """Behind a shuffle, whose tasks may run twice, and where the optimizer knows that there are no rows."""
    set_conf("spark.sql.adaptive.enabled", adaptive)
    rows = numbers(spark, 700)
    shuffled = rows.unionAll(rows).distinct()
    seen = measure_rows(shuffled, snapshot, snapshot.index_configuration, 700)
    assert (seen.weights.rows, len(seen.sample.table)) == (700, 700)
    nothing = measure_rows(rows.where("false"), snapshot, snapshot.index_configuration, 5)
    assert (nothing.weights.rows, nothing.stats[0].span) == (0, None)
    assert measure_rows(spark.createDataFrame([], NUMBERS), snapshot, snapshot.index_configuration, 5).weights.rows == 0


@pytest.mark.slow
def test_where_nothing_is_known_there_is_no_sample(spark, new_table, snapshot):
    rows = numbers(spark, 50)
    assert measure_rows(rows, snapshot, snapshot.index_configuration, None).sample is None
    fresh = new_table(NUMBERS, index="x").managed.snapshot()
    assert measure_rows(rows, fresh, fresh.index_configuration, 50).sample is None
    quantiles = new_table(NUMBERS, index="x:quantiles").managed.snapshot()
    assert measure_rows(rows, quantiles, quantiles.index_configuration, 50).sample is None


@pytest.mark.slow
def test_rows_outside_and_inside_are_kept(spark, new_table, small_samples):
    """Sampled rewrites, with and without a new revision, keep the rows."""
    table = new_table(NUMBERS, index="x,y", cube_size=100, file_bytes="10kb")
    for start, shift in ((0, 0), (3000, 0), (6000, 5)):
        table.append(numbers(spark, 3000, start=start).withColumn("x", F.col("x") + shift)).index()
    table.optimize()
    assert table.data.count() == 9000
    assert checksum(table.data.where("x < 1").select("id"))[0] == 6000


def test_of_long_texts_the_driver_gets_the_beginning(spark, snapshot):
    texts = ["long" * 10_000, "b", None]
    rows = spark.createDataFrame([(i, 0.5, 5, text) for i, text in enumerate(texts)], NUMBERS).coalesce(1)
    seen = measure_rows(rows, snapshot, snapshot.index_configuration, 3)
    assert seen.sample.table.column("v2").to_pylist() == [b"long" * 32, b"b", None]


@pytest.mark.parametrize(("distinct", "rows"), [(50, 1_000_000), (5_000, 1_000_000), (1_000_000, 1_000_000)])
def test_distinct_weights_are_estimated_from_a_sample(distinct, rows):
    source = np.random.default_rng(1)
    weights = (source.integers(0, distinct, 100_000) * 4000).astype(np.int32)
    sample = RowSample(None, rows, 5, (), pa.table({"weight": weights}))
    assert sample.distinct_weights == pytest.approx(distinct, rel=0.1)


def test_the_sample_grows_with_cubes_and_files_up_to_a_limit():
    assert sample_rows(5_000_000, 1 / 28, 180_000) == 100_000
    assert sample_rows(5_000_000, 1 / 1000, 5_000) == 1_000_000
    assert sample_rows(5_000_000, 1 / 1000, 5_000_000) == 200_000
    assert sample_rows(5_000_000_000, 1 / 1000, 5_000) == 2_000_000
