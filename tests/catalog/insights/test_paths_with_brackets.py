"""Commits of a table whose path is a pattern that matches a sibling."""

import pytest

from catalog.files import log_changes
from catalog.insights.commit_facts import file_lives
from catalog.insights.ingestion import logged_rows


@pytest.fixture(scope="module")
def table(shared_table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    made, sibling = (
        shared_table("id BIGINT", index="id", tail=f"LOCATION '{folder}/{name}'") for name in ("g[12]", "g1")
    )
    made.sql("INSERT INTO {t} VALUES (1), (2)")
    made.sql("INSERT INTO {t} VALUES (3)")
    for _ in range(4):
        sibling.sql("INSERT INTO {t} SELECT * FROM range(0, 7, 1, 1)")
    return made


@pytest.mark.slow
def test_facts_are_of_its_own_commits(table):
    snapshot = table.managed.snapshot()
    assert [row.rows_added for row in logged_rows(snapshot)] == [0, 2, 1]
    lives, last_unknown = file_lives(snapshot)
    assert (set(lives.added.tolist()), last_unknown) == ({1, 2}, -1)


def test_changes_that_a_job_reads_are_of_its_own_commits(table, monkeypatch):
    monkeypatch.setattr(log_changes, "MAX_SHORT_BYTES", 0)
    changes = table.managed.snapshot().version_files.changes_since(1)
    assert changes.added["rows"].to_pylist() == [1]
