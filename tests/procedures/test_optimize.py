"""``optimize`` from end to end: rows stay, tags tell the truth, and it ends."""

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from tables import NUMBERS, numbers


def _states(report):
    return [(r.state, r.reason) for r in report]


def test_first_indexing_makes_revision_one_and_true_tags(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="20kb")
    table.append(numbers(spark, 4000)).append(numbers(spark, 1000, start=4000))
    before = table.checksum()

    report = table.optimize()

    assert _states(report) == [("committed", "UNINDEXED")]
    assert (report[0].input_files, report[0].rows, report[0].version) == (2, 5000, table.version)
    assert table.checksum() == before
    assert set(table.revisions) == {0, 1}
    assert not table.unindexed
    assert len(table.files) == report[0].output_files > 2
    assert check_placement(table) == 5000
    commit = table.actions(table.version)
    assert not any(a["add"]["dataChange"] for a in commit if "add" in a)
    assert not any(a["remove"]["dataChange"] for a in commit if "remove" in a)
    assert all({"revision", "blocks", "use.write", "use.band", "use.timeRange"} <= set(a["tags"]) for a in table.added(table.version))


def test_second_run_finds_nothing_and_writes_nothing(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="20kb").append(numbers(spark, 3000))
    table.optimize()
    before = table.state()
    for strategy in (None, "LeveledCompaction", "UnindexedFiles", "LeveledCompaction,UnindexedFiles"):
        report = table.optimize(strategy=strategy)
        assert _states(report) == [("skipped", "NOTHING_TO_DO")]
        assert report[0].message
    assert table.state() == before
