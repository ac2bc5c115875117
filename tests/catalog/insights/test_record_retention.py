"""Records of queries and rows of commits are kept as long as the properties say, also in merged files; no Spark."""

import json
from types import SimpleNamespace

import pytest
from folders import memory_table

from catalog.insights import consumption, ingestion
from catalog.insights.commit_rows import CommitRow
from catalog.insights.consumption import CONSUMPTION_FOLDER, add_scans
from catalog.insights.ingestion import INGESTION_FOLDER, record_commits
from catalog.table.managed_table import ManagedTable

DAY = 86_400_000
HOUR = DAY // 24


@pytest.fixture
def table(monkeypatch):
    """A table of 10-day retentions; a test sets the version, the time of its commit, and the commits in its log."""
    snapshot = SimpleNamespace(
        settings={"use.insights.consumption.days": "10"}, table_id="t", version=-1, committed_at=0, log=[], reads=0
    )

    def logged_rows(_, first=0):
        snapshot.reads += 1
        return [row for row in snapshot.log if row.version >= first]

    monkeypatch.setattr(ManagedTable, "snapshot", lambda _: snapshot)
    monkeypatch.setattr(ingestion, "logged_rows", logged_rows)
    for module in (consumption, ingestion):
        monkeypatch.setattr(module, "MOST_FILES", 10)
    return memory_table({})


def _commit(table, time):
    snapshot = table.snapshot()
    snapshot.version, snapshot.committed_at = snapshot.version + 1, time
    snapshot.log.append(CommitRow(snapshot.version, time, None, None, "WRITE", True, 1, 1, 1, 0, 0, 0, 0))


def _times(table, folder, field):
    texts = [table.read_state(f"{folder}/{name}") for name in table.list_state(folder) if name.endswith(".json")]
    return {json.loads(line)[field] for text in texts for line in text.split("\n")}


def test_merged_records_of_queries_are_not_kept_without_end(table):
    """A merged file has the time of its newest record, and is merged again before it is old enough to be deleted."""
    records = [HOUR * hour for hour in range(0, 40 * 24, 6)]
    for time in records:
        line = {"table_id": "t", "application_id": "a", "execution_id": time, "scan": 0, "finished_at": time}
        add_scans(table, json.dumps(line), now=time)
    left = _times(table, CONSUMPTION_FOLDER, "finished_at")
    assert {time for time in records if time >= records[-1] - 10 * DAY} <= left
    # The files that wait for the next merge are of less than four days.
    assert min(left) >= records[-1] - 14 * DAY


def test_merged_rows_of_commits_are_not_kept_without_end(table):
    times = [HOUR * hour for hour in range(0, 40 * 24, 6)]
    for time in times:
        _commit(table, time)
        assert record_commits(table, 10 * DAY, time) == 1
    left = _times(table, INGESTION_FOLDER, "time")
    assert {time for time in times if time >= times[-1] - 10 * DAY} <= left
    assert min(left) >= times[-1] - 14 * DAY


def test_the_log_of_an_idle_table_is_not_read_again_and_again(table):
    """Its newest row is deleted in time, and without it nothing says which commits are recorded."""
    for time in (0, DAY, 12 * DAY):
        _commit(table, time)
    assert record_commits(table, 10 * DAY, 12 * DAY) == 1
    assert _times(table, INGESTION_FOLDER, "time") == {12 * DAY}
    reads = table.snapshot().reads
    for hour in range(48):
        assert record_commits(table, 10 * DAY, 22 * DAY + (hour + 1) * HOUR) == 0
    assert table.list_state(INGESTION_FOLDER) == []
    assert table.snapshot().reads == reads
    _commit(table, 25 * DAY)
    assert record_commits(table, 10 * DAY, 25 * DAY) == 1
