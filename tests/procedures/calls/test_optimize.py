"""``optimize`` from end to end: rows stay, tags tell the truth, and it ends."""

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

from otree.level import level_of


def states(report):
    return [(r.state, r.reason) for r in report]


def test_first_indexing_makes_revision_one_and_true_tags(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="20kb")
    table.append(numbers(spark, 4000)).append(numbers(spark, 1000, start=4000))
    before = table.checksum()

    report = table.optimize()

    assert states(report) == [("committed", "UNINDEXED")]
    assert (report[0].input_files, report[0].rows, report[0].version) == (2, 5000, table.version)
    assert report[0].output_bytes == sum(f.size for f in table.files)
    assert table.checksum() == before
    assert set(table.revisions) == {0, 1}
    assert not table.unindexed
    assert len(table.files) == report[0].output_files > 2
    assert check_placement(table) == 5000
    commit = table.actions(table.version)
    assert not any(a["add"]["dataChange"] for a in commit if "add" in a)
    assert not any(a["remove"]["dataChange"] for a in commit if "remove" in a)
    tags = {"revision", "blocks", "use.write", "use.band", "use.timeRange"}
    assert all(tags <= set(add["tags"]) for add in table.added(table.version))


def test_second_run_finds_nothing_and_writes_nothing(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="20kb").append(numbers(spark, 3000))
    table.index()
    before = table.state()
    for strategy in (None, "LeveledCompaction,UnindexedFiles"):
        report = table.optimize(strategy=strategy)
        assert states(report) == [("skipped", "NOTHING_TO_DO")]
        assert report[0].message
    assert table.state() == before


def test_appends_join_the_tree_and_keep_its_revision(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="20kb").append(numbers(spark, 4000))
    # The ends of the space are there from the start, so that no later row leaves it.
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''"))
    table.index()
    table.append(numbers(spark, 2000, start=4000))
    before = table.checksum()
    assert states(table.optimize(strategy="UnindexedFiles")) == [("committed", "UNINDEXED")]
    assert table.checksum() == before
    assert set(table.revisions) == {0, 1}
    assert check_placement(table) == 6002


@pytest.mark.slow
def test_growing_values_make_few_revisions(spark, new_table):
    table = new_table("t BIGINT, v INT", index="t", cube_size=100)
    for step in range(6):
        rows = spark.range(step * 1000, step * 1000 + 200).select(F.col("id").alias("t"), F.lit(step).alias("v"))
        table.append(rows).index()
    assert 2 <= max(table.revisions) <= 5
    assert check_placement(table) == 1200
    newest = table.revisions[max(table.revisions)].transformations[0]
    assert newest.maximum > 5200
    assert table.data.where("t BETWEEN 3100 AND 4049").count() == 150


@pytest.mark.slow
def test_data_leaving_the_space_is_told(spark, new_table):
    table = new_table("t BIGINT", index="t", cube_size=100)
    table.append(spark.range(0, 500).select(F.col("id").alias("t"))).index()
    inside = table.append(spark.range(100, 200).select(F.col("id").alias("t"))).optimize(strategy="UnindexedFiles")
    outside = table.append(spark.range(500, 600).select(F.col("id").alias("t"))).optimize(strategy="UnindexedFiles")
    assert "revision 2" not in inside[0].message
    assert "revision 2" in outside[0].message
    assert table.commit_info(table.version)["operationParameters"]["revision"] in ("2", '"2"')
    assert {f.revision for f in table.files} == {1, 2}


@pytest.mark.slow
def test_compaction_of_small_appends_ends_and_lifts_levels(spark, new_table):
    appends = 12
    table = new_table(NUMBERS, index="x,y", cube_size=400, file_bytes="30kb").append(numbers(spark, 3000))
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''"))
    table.index()
    table.append(numbers(spark, 60 * appends, start=3000, partitions=appends), files=appends)
    assert len(table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})) == appends
    before, files, levels = table.checksum(), len(table.files), _lowest_level(table)

    report = table.optimize(strategy="LeveledCompaction", max_iterations=30)

    assert report
    assert {r.state for r in report} == {"committed"}, report
    assert len(report) < 30
    assert table.checksum() == before
    assert len(table.files) < files
    assert _lowest_level(table) > levels
    assert check_placement(table) == 3002 + appends * 60
    state = table.state()
    assert states(table.optimize(strategy="LeveledCompaction")) == [("skipped", "NOTHING_TO_DO")]
    assert table.state() == state


def _lowest_level(table):
    per_write = {}
    for file in table.files:
        for block in file.blocks:
            key = file.write_id, block.cube_id
            per_write[key] = per_write.get(key, 0) + block.element_count
    return min(level_of(max(per_write[f.write_id, b.cube_id] for b in f.blocks)) for f in table.files)


@pytest.mark.slow
def test_small_batches_make_several_iterations(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=300)
    for start in range(0, 4000, 1000):
        table.append(numbers(spark, 1000, start=start))
    before = table.checksum()
    oldest = [f.path for f in sorted(table.files, key=lambda f: (f.modification_time, f.path))]
    report = table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    assert [(r.state, r.input_files, r.iteration) for r in report] == [("committed", 1, i) for i in range(1, 5)]
    assert [path for r in report for path in table.removed(r.version)] == oldest
    assert table.checksum() == before
    assert check_placement(table) == 4000


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["duplicates", "constant", "skewed"])
def test_data_that_does_not_spread(spark, new_table, plan):
    table = new_table("a INT, b DOUBLE", index="a,b", cube_size=50, file_bytes="5kb")
    rows = {
        "duplicates": spark.range(3000).selectExpr("CAST(id % 3 AS INT) a", "CAST(id % 2 AS DOUBLE) b"),
        "constant": spark.range(1000).selectExpr("7 a", "1.5D b"),
        "skewed": spark.range(2000).selectExpr("CAST(pow(id % 40, 5) AS INT) a", "exp(-CAST(id % 300 AS DOUBLE)) b"),
    }[plan]
    table.append(rows)
    before = table.checksum()
    assert states(table.optimize()) == [("committed", "UNINDEXED")]
    assert table.checksum() == before
    assert check_placement(table) == before[0]
    assert states(table.optimize()) == [("skipped", "NOTHING_TO_DO")]


@pytest.mark.slow
def test_an_empty_table_and_files_without_rows(spark, new_table):
    table = new_table("a BIGINT", index="a", properties={"delta.enableDeletionVectors": "true"})
    assert states(table.optimize()) == [("skipped", "NOTHING_TO_DO")]
    table.append(spark.range(100).selectExpr("id a"))
    table.sql("DELETE FROM {t} WHERE a < 50")
    table.sql("DELETE FROM {t} WHERE a >= 50 AND a % 2 >= 0")
    table.append(spark.range(0).selectExpr("id a"))
    report = table.optimize()
    assert report[-1].state in ("committed", "skipped")
    assert table.data.count() == 0
    assert table.optimize()[-1].reason == "NOTHING_TO_DO"
    table.append(spark.range(10).selectExpr("id a")).index()
    assert check_placement(table) == 10


@pytest.mark.slow
def test_tags_change_no_row_of_other_readers(spark, new_table):
    """A change of configuration starts a new revision for new files; old ones stay readable as they are."""
    table = new_table(NUMBERS, index="x", cube_size=200).append(numbers(spark, 1000))
    table.index()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='y,s', 'use.index.cubeSize'='300')")
    table.append(numbers(spark, 1000, start=1000))
    before = table.checksum()
    table.index()
    assert {f.revision for f in table.files} == {1, 2}
    assert table.revisions[2].columns == ("y", "s")
    assert table.revisions[2].desired_cube_size == 300
    assert table.checksum() == before
    assert check_placement(table) == 2000
