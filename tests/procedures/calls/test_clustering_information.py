"""``use.clustering_information``: overlap and depth as defined, whatever the column, from metadata only."""

import random

import pytest
from tables import NUMBERS, numbers

import sql_ext
from procedures.insight.checking.clustering_overlap import overlap_of


def _reference(ranges):
    overlaps, depths = [], []
    for low, high in ranges:
        meeting = [(a, b) for a, b in ranges if a <= high and low <= b]
        overlaps.append(len(meeting) - 1)
        depths.append(
            max(
                sum(a <= point <= b for a, b in meeting)
                for point in {low, *(a for a, _ in meeting)}
                if low <= point <= high
            )
        )
    return overlaps, depths


@pytest.mark.slow
def test_overlap_is_that_of_the_definition(spark):
    draw = random.Random(7)
    cases = [
        [(1, 1)],
        [(0, 9), (10, 19), (20, 29)],
        [(0, 10), (10, 20), (20, 30)],
        [(5, 5)] * 4,
        [(low, low + draw.choice([0, 3, 20, 60])) for low in (draw.randrange(100) for _ in range(37))],
    ]
    for ranges in cases:
        frame = spark.createDataFrame(
            [(f"f{i}", low, high, False) for i, (low, high) in enumerate(ranges)],
            "path string, low int, high int, empty boolean",
        )
        overlaps, depths = _reference(ranges)
        found = overlap_of(frame)
        assert found.average_overlaps == pytest.approx(sum(overlaps) / len(ranges))
        assert found.average_depth == pytest.approx(sum(depths) / len(ranges))
        assert (found.max_overlaps, found.max_depth) == (max(overlaps), max(depths))
        assert found.constant_files == sum(low == high for low, high in ranges)
        assert sum(found.histogram.values()) == len(ranges)
        assert found.histogram.get(1, 0) == depths.count(1)
        assert found.histogram.get(32, 0) == sum(16 < d <= 32 for d in depths)


@pytest.mark.slow
def test_a_file_without_statistics_counts_everywhere(spark):
    rows = [("a", 1, 2, False), ("b", 3, 4, False), ("c", None, None, False), ("d", None, None, True)]
    found = overlap_of(spark.createDataFrame(rows, "path string, low int, high int, empty boolean"))
    assert (found.unknown_files, found.average_depth, found.average_overlaps) == (1, 2.0, 1.0)


@pytest.mark.slow
def test_a_table_by_any_columns(spark, new_table):
    table = new_table(
        f"{NUMBERS}, at TIMESTAMP, g STRUCT<v: DECIMAL(9,2)>, p DATE, a ARRAY<INT>", index="x", cube_size=100,
        tail="PARTITIONED BY (p)",
    )  # fmt: skip
    day = "date_add(DATE'2024-01-01', CAST(id DIV 100 AS INT))"
    for start in range(0, 400, 100):
        rows = numbers(spark, 100, start=start).selectExpr(
            "*",
            "timestamp_micros(id * 1000000000L + 1) at",
            "named_struct('v', CAST(id AS DECIMAL(9,2))) g",
            f"{day} p",
            "array(1) a",
        )
        table.append(rows)

    def ask(columns):
        rows = sql_ext.call(spark, "clustering_information", table=table.name, columns=columns).collect()
        return {r.columns: r for r in rows}

    found = ask("id, x, at, g.v, p, s")
    for name in ("id", "at", "g.v", "p"):
        r = found[name]
        assert (r.files, r["rows"], r.average_depth, r.max_overlaps) == (4, 400, 1.0, 0), name
        assert r.depth_histogram == {1: 4}
        assert r.advice == "WELL_CLUSTERED"
    assert (found["p"].constant_files, found["id"].constant_files) == (4, 0)
    assert (found["x"].average_depth, found["x"].max_depth, found["x"].average_overlaps) == (4.0, 4, 3.0)
    assert found["s"].average_depth == 4.0
    assert found["x"].unindexed_files_share == found["x"].unindexed_bytes_share == 1.0
    assert found["s"].advice == "OTHER_COLUMNS"
    both = found["id, x, at, g.v, p, s"]
    assert (both.average_depth, both.max_depth) == (1.0, 1)
    # Without columns: those of the index.
    assert list(ask(None)) == ["x"]
    table.optimize(strategy="UnindexedFiles")
    assert ask("x")["x"].unindexed_files_share == 0.0
    version = table.version
    for columns, code in [
        ("nothing", "USE_UNKNOWN_COLUMN"),
        ("a", "USE_INVALID_ARGUMENT"),
        ("x,x", "USE_INVALID_ARGUMENT"),
    ]:
        with pytest.raises(sql_ext.UseError) as refused:
            ask(columns)
        assert refused.value.code == code
    assert table.version == version


def test_columns_are_needed_without_an_index(spark, new_table):
    table = new_table(NUMBERS)
    with pytest.raises(sql_ext.UseError) as refused:
        sql_ext.call(spark, "clustering_information", table=table.name)
    assert refused.value.code == "USE_NO_INDEX_COLUMNS"
    [empty] = sql_ext.call(spark, "clustering_information", table=table.name, columns="x").collect()
    assert (empty.files, empty.average_depth, empty.advice) == (0, 0.0, "FEW_FILES")
