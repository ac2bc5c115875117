"""What is read of commits while a purge deletes the oldest of them."""

import pytest
from pyspark.sql.classic.dataframe import DataFrame
from tables import NUMBERS, numbers

from catalog.insights.commit_facts import file_lives
from catalog.insights.ingestion import logged_rows
from catalog.insights.statement_notes import statement_notes


@pytest.fixture
def table(spark, new_table):
    made = new_table(NUMBERS, index="x,y")
    for number in range(4):
        made.append(numbers(spark, 10, 10 * number))
    made.checkpoint()
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "action"), [(logged_rows, "collect"), (file_lives, "toArrow"), (statement_notes, "toArrow")]
)
def test_commits_may_go_after_they_were_listed(table, monkeypatch, read, action):
    snapshot = table.managed.snapshot()
    oldest = min((table.path / "_delta_log").glob("*.json"))
    take, gone = getattr(DataFrame, action), []

    def late(data):
        if oldest.exists():
            oldest.unlink()
            gone.append(oldest)
        return take(data)

    monkeypatch.setattr(DataFrame, action, late)
    found = read(snapshot)
    assert gone == [oldest]
    if read is logged_rows:
        assert [row.version for row in found] == [1, 2, 3, 4]
