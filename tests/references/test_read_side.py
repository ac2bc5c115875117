"""The read side of the format, sentence by sentence (reference C)."""

import json

import pytest
from pyspark.sql import functions as F
from tables import PlainReads

from otree.weight import WeightRange
from sql_ext import read_report

# ------------------------------------------------------------------------------------- 1. rules


def test_the_rules_are_injected_by_an_extension_that_builds_on_deltas(spark):
    extensions = spark.conf.get("spark.sql.extensions")
    assert "io.usespark" in extensions
    # Delta's statements and planning work in the same session.
    assert spark.sql("SELECT 1").count() == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {t} TABLESAMPLE (20 PERCENT)",
        "SELECT id, x, y FROM (SELECT id, x, y FROM {t}) TABLESAMPLE (20 PERCENT)",
        "SELECT * FROM (SELECT * FROM {t} WHERE id % 2 = 0) TABLESAMPLE (20 PERCENT)",
    ],
    ids=["relation", "project", "filter"],
)
def test_a_sample_becomes_a_filter_on_the_weight(spark, indexed, query):
    sample = spark.sql(query.format(t=indexed.name))
    assert not read_report(sample).spark_samples
    taken = WeightRange.of_sample(0.0, 0.2)
    rows = spark.sql(query.format(t=indexed.name).replace("TABLESAMPLE (20 PERCENT)", ""))
    with PlainReads(spark):
        expected = rows.where(F.hash("x", "y").between(taken.first, taken.last)).select("id").collect()
    assert {r.id for r in sample.select("id").collect()} == {r.id for r in expected}


def test_a_sample_with_replacement_is_not_matched(indexed):
    (left,) = read_report(indexed.data.sample(True, 0.2)).spark_samples
    assert left.reason == "WITH_REPLACEMENT"


def test_the_scan_lists_files_by_the_metadata_of_the_index(indexed):
    (scan,) = read_report(indexed.data.where("x < 0.1 AND y < 100")).scans
    assert 0 < scan.kept_files < scan.total_files


# ------------------------------------------------------------------------------------- 2. old tables


@pytest.mark.slow
def test_files_of_before_version_0_6_are_unindexed_with_a_warning(spark, new_table, caplog):
    table = new_table("id BIGINT, a BIGINT", index="a").append(spark.range(50).selectExpr("id", "id a"))
    old = {"state": "FLOODED", "cube": "w", "revision": "1", "minWeight": "5", "maxWeight": "9", "elementCount": "50"}
    lines = [json.dumps({"add": {**add, "dataChange": False, "tags": old}}) for add in table.replayed()[0].values()]
    commit = table.path / "_delta_log" / f"{table.version + 1:020d}.json"
    commit.write_text("\n".join(lines), encoding="utf-8")
    spark.sql(f"REFRESH TABLE {table.name}")
    assert {r.revision_id for r in table.sql("SELECT * FROM {t}.index_files")} == {0}
    assert table.data.where("a = 7").count() == 1
    table.index()
    assert not table.unindexed
    assert [m for m in caplog.messages if "before version 0.6" in m]


# ------------------------------------------------------------------------------------- 3. tolerance


@pytest.mark.slow
def test_an_answer_within_an_error_bound_takes_the_place_of_a_fraction(spark, indexed):
    rows = spark.sql(f"CALL use.approximate('SELECT avg(x) FROM {indexed.name}', tolerance => 0.2)").collect()
    ((row, exact),) = zip(rows, spark.sql(f"SELECT avg(x) FROM {indexed.name}").collect(), strict=True)
    assert row.met
    assert row.estimate == pytest.approx(exact[0], rel=0.25)
