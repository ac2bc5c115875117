"""The tree that is estimated from data: the same for any order and partitions, and true to the desired size."""

import pytest
from pyspark.sql import functions as F

from otree.revision import next_revision
from otree.transformer import Transformer
from otree.tree import Tree
from procedures.layout.index_columns import IndexColumns
from procedures.layout.row_layout import grown_tree
from procedures.layout.row_measures import measure_columns, sample_of

NAMES = ("a", "b")
UNIT = "pmod(xxhash64(id, '{}'), 1000000007) / 1000000007D"
# Two columns of rows with an id: b tells rows apart, so that weights are spread.
DATA = {
    "uniform": f"{UNIT.format('a')} a",
    # The value of rank k is about 1 / k as frequent as the first.
    "zipf": f"floor(pow(10000, {UNIT.format('a')})) a",
    "clustered": f"floor({UNIT.format('c')} * 5) * 1e6 + pow({UNIT.format('a')}, 8) a",
    "nine of ten equal": f"IF({UNIT.format('c')} < 0.9, 42D, {UNIT.format('a')} * 1e6) a",
}


def _rows(spark, kind, count, partitions=2):
    return spark.range(0, count, 1, partitions).selectExpr(DATA[kind], f"{UNIT.format('b')} b")


def _grown(spark, rows, size, kinds=("linear", "linear")):
    transformers = tuple(Transformer(kind, name, "DoubleDataType") for kind, name in zip(kinds, NAMES, strict=True))
    rows = rows.withColumn("a", F.col("a").cast("double"))
    seen = measure_columns(rows, transformers, NAMES)
    columns = IndexColumns(spark, next_revision(None, transformers, seen.stats, size, 1, "/t"), NAMES)
    sample, _ = sample_of(rows, seen.weights.rows, columns, 1.0)
    assert sample.rows == seen.weights.rows
    return rows, columns, grown_tree(sample, Tree(len(NAMES), {}), {})


def test_order_and_partitions_do_not_matter(spark):
    rows = _rows(spark, "zipf", 6000, 3)
    trees = [
        _grown(spark, same, 200)[2]
        for same in (rows.coalesce(1), rows, rows.orderBy(F.desc("b")).coalesce(2), rows.repartition(7, "b"))
    ]
    assert len(trees[0].thresholds) > 10
    assert all(tree.thresholds == trees[0].thresholds for tree in trees)


def _check_inner_cubes(spark, kind, count, size, kinds):
    rows, columns, tree = _grown(spark, _rows(spark, kind, count), size, kinds)
    ordinals = tree.ordinals()
    found = rows.groupBy(columns.cube(ordinals).alias("cube")).count().collect()
    counts = {ordinals.cube(r.cube)[0]: r["count"] for r in found}
    assert sum(counts.values()) == count
    assert len(tree.thresholds) >= 4
    for cube in tree.thresholds:
        assert counts[cube.text] == pytest.approx(size, rel=0.1), cube.text
    # What is left below fits a leaf, unless equal values cannot be told apart.
    leaves = [n for text, n in counts.items() if text not in tree.inner.by_text]
    assert max(leaves) <= size * 1.3


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("kinds", [("linear", "linear"), ("quantiles", "linear")], ids=" ".join)
@pytest.mark.parametrize("kind", DATA)
def test_inner_cubes_hold_what_is_desired(spark, kind, kinds):
    _check_inner_cubes(spark, kind, 40_000, 4000, kinds)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DATA)
def test_inner_cubes_of_many_rows_hold_what_is_desired(spark, kind):
    _check_inner_cubes(spark, kind, 1_000_000, 20_000, ("linear", "linear"))
