"""Why a vacuum deletes a file, and which files the commits in the log protect."""

from types import SimpleNamespace

from procedures.lifecycle.vacuum.reasons import with_reasons


def test_a_file_that_a_commit_removed_within_the_retention_stays(spark):
    inventory = "path string, length bigint, isDir boolean, modificationTime bigint"
    files = spark.createDataFrame([(name, 7, False, 10) for name in ("early", "late", "twice", "stray")], inventory)
    removals = spark.createDataFrame(
        [("early", 99), ("late", 100), ("twice", 50), ("twice", 150)], "path string, removed_at bigint"
    )
    found = with_reasons(SimpleNamespace(removals=lambda: removals), files, delete_before=100).collect()
    assert {(row.path, row.reason) for row in found} == {("early", "EXPIRED"), ("stray", "UNREFERENCED")}
