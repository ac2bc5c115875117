"""The virtual tables that show the index: ``revisions``, ``cubes``, ``blocks`` and ``index_files``."""

from collections import Counter

import pytest
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

from catalog.virtual_tables.blocks import BLOCKS
from otree.cube import CubeId
from otree.weight import MAX_WEIGHT


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Two revisions of other columns, an unindexed file, and a deletion vector."""
    made = shared_table(
        f"{NUMBERS}, day DATE", index="x,y", cube_size=200, file_bytes="20kb",
        properties={"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    rows = numbers(spark, 3000).withColumn("day", F.expr("date_add(DATE'2024-01-01', CAST(id % 100 AS INT))"))
    made.append(rows.where("id < 1000")).index()
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='day,s')")
    made.append(rows.where("id >= 1000 AND id < 2500")).index()
    made.append(rows.where("id >= 2500"))
    made.sql("DELETE FROM {t} WHERE id = 7")
    return made


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("kind", ["revisions", "cubes", "blocks", "index_files"])
def test_every_spelling_gives_the_same_rows(spark, table, kind):
    short = table.name.removeprefix("default.")
    spellings = (
        f"{short}.{kind}",
        f"default.{short}.{kind}",
        f"spark_catalog.default.{short}.{kind}",
        f"use_catalog.spark_catalog.default.{short}.{kind}",
        f"delta.`{table.path}`.{kind}",
        f"use_catalog.spark_catalog.delta.`{table.path}`.{kind}",
    )
    found = [sorted(map(str, spark.table(name).collect())) for name in spellings]
    assert found[0]
    assert all(rows == found[0] for rows in found)


def test_revisions(spark, table):
    rows = {r.revision_id: r for r in spark.table(f"{table.name}.revisions").collect()}
    assert list(rows) == [0, 1, 2]
    assert {n: (r["rows"], r.files) for n, r in rows.items()} == {
        n: (sum(f.rows for f in table.files if f.revision == n), sum(f.revision == n for f in table.files))
        for n in rows
    }
    assert rows[1]["rows"] == 999
    assert sum(r.bytes for r in rows.values()) == sum(f.size for f in table.files)
    assert rows[1].columns == ["x", "y"]
    assert rows[2].columns == ["day", "s"]
    assert rows[2].transformations == ["linear 2024-01-01 to 2024-04-09", "hashing"]
    assert rows[1].transformations[1] == f"linear 0 to {table.revisions[1].transformations[1].maximum}"
    assert rows[2].cube_size == 200
    assert rows[2].timestamp == table.revisions[2].timestamp


def test_cubes(spark, table):
    rows = spark.table(f"{table.name}.cubes").collect()
    elements, least = Counter(), {}
    for file in table.files:
        for block in file.blocks:
            key = (file.revision, block.cube_id)
            elements[key] += block.element_count
            least[key] = min(least.get(key, MAX_WEIGHT), block.max_weight)
    assert {(r.revision_id, r.cube_id): r.element_count for r in rows} == dict(elements)
    assert {(r.revision_id, r.cube_id): r.max_weight for r in rows} == least
    assert all(r.depth == len(r.cube_id) and r.blocks >= r.files >= 1 for r in rows)
    roots = {r.revision_id: r.box for r in rows if r.cube_id == ""}
    assert [tuple(side) for side in roots[2]] == [("day", "2024-01-01", "2024-04-09"), ("s", None, None)]
    # Rows of a cube lie in its box.
    for r in rows:
        if r.revision_id == 1 and r.depth == 1:
            (start, end), _ = CubeId.parse(r.cube_id, 2).box()
            assert float(r.box[0]["from"]) == pytest.approx(start, abs=1e-2)
            assert float(r.box[0]["to"]) == pytest.approx(end, abs=1e-2)


def test_blocks(spark, table):
    rows = spark.table(f"{table.name}.blocks").collect()
    assert sorted(tuple(r) for r in rows) == sorted(
        (f.revision, b.cube_id, f.path, b.min_weight, b.max_weight, b.element_count)
        for f in table.files
        for b in f.blocks
    )


def test_index_files(spark, table):
    rows = {r.path: r for r in spark.table(f"{table.name}.index_files").collect()}
    files = {f.path: f for f in table.files}
    assert set(rows) == set(files)
    for path, r in rows.items():
        file = files[path]
        assert (r.revision_id, r.size, r["rows"], r.blocks) == (file.revision, file.size, file.rows, len(file.blocks))
        assert (r.deletion_vector, r.modification_time) == (bool(file.deletion_vector), file.modification_time)
        assert r.partition_values == {}
        if file.revision:
            assert r.min_weight == min(b.min_weight for b in file.blocks)
            assert 0 <= r["level"] <= 3
        else:
            assert (r["level"], r.min_weight, r.max_weight) == (-1, None, None)
    assert any(r.deletion_vector for r in rows.values())


def test_columns_are_pruned_and_other_tables_joined(spark, table):
    name = table.name
    found = spark.sql(
        f"SELECT sum(b.element_count) n, count(DISTINCT f.path) files FROM {name}.blocks b "
        f"JOIN {name}.index_files f ON b.path = f.path WHERE f.revision_id = 2"
    ).collect()[0]
    assert tuple(found) == (1500, sum(f.revision == 2 for f in table.files))


def test_the_scan_stays_distributed(spark, table):
    """The rows of the file list are not brought to the driver, as a local relation would be."""
    plan = BLOCKS.rows(table.managed)._jdf.queryExecution().executedPlan().toString()
    assert "Scan ExistingRDD Delta Table State" in plan
    assert "LocalTableScan" not in plan


def test_a_table_without_an_index(spark, new_table):
    plain = new_table(NUMBERS).append(numbers(spark, 10))
    assert [r.revision_id for r in spark.table(f"{plain.name}.revisions").collect()] == [0]
    assert spark.table(f"{plain.name}.cubes").count() == 0
    assert spark.table(f"{plain.name}.blocks").count() == 0
    assert [r["rows"] for r in spark.table(f"{plain.name}.index_files").collect()] == [10]
