"""Groups side by side: each has its own outcome, and a request to stop lets those under way end."""

import json
import os
import signal
import threading

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from staging import At, Counted, Meeting, optimize, run_of, strays
from tables import DeltaTable

from catalog.errors import CommitUnknownError
from catalog.history.events import EVENTS_FOLDER
from catalog.state.lease import LEASE_FILE
from procedures.layout.step import Step
from procedures.process.application import application

# One group per file, oldest first.
ONE_BY_ONE = {"strategy": "UnindexedFiles", "options": {"batch_bytes": "1"}}


def rows(spark, start, end):
    return spark.range(start, end).select(F.col("id").alias("a"), (F.col("id") / 7).alias("b"))


@pytest.fixture
def table(spark, new_table):
    """300 rows indexed, and three unindexed files of 30 rows each: [100, 130), [200, 230) and [250, 280)."""
    properties = {"delta.enableDeletionVectors": "false"}
    made = new_table("a BIGINT, b DOUBLE", index="a,b", cube_size=100, properties=properties)
    made.append(rows(spark, 0, 300)).index()
    for start in (100, 200, 250):
        made.append(rows(spark, start, start + 30))
    return made


def group_number():
    """Which group of the plan the calling thread rewrites."""
    return int(threading.current_thread().name.rpartition("-")[2])


def kept_events(table):
    names = table.managed.list_state(EVENTS_FOLDER)
    return [json.loads(table.managed.read_state(f"{EVENTS_FOLDER}/{name}")) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("parallelism", [2, 4])
def test_only_the_loser_is_planned_again(spark, table, monkeypatch, parallelism):
    """All groups are about to commit when one of them loses an input."""
    at_once = min(parallelism, 3)
    meeting, counted, lost = Meeting(at_once), Counted(monkeypatch), []

    def observe(step):
        if step is Step.COMMIT and not lost:
            meeting.wait()
            if group_number() == 1:
                table.sql("DELETE FROM {t} WHERE a BETWEEN 220 AND 224")
                lost.append(True)
            meeting.wait()

    report = optimize(table, observe, parallelism=parallelism, **ONE_BY_ONE)
    assert counted.matches(report)
    first = [r for r in report if r.iteration == 1]
    assert [r.state for r in first] == ["committed", "failed", "committed"][:at_once]
    later = [r for r in report if r.iteration > 1]
    # The delete wrote the rest of two files anew: that of the loser, and the indexed one, which stays indexed.
    assert [r.state for r in later] == ["committed"] * len(later)
    assert sum(r.rows for r in later) == 25 + (30 if at_once == 2 else 0)
    assert strays(table) == set()
    assert check_placement(table) == table.data.count() == 380


@pytest.mark.slow
def test_a_failure_lets_the_others_end(table):
    before = table.checksum()

    def observe(step):
        if step is Step.WRITE and group_number() == 1:
            raise KeyError("staged")

    with pytest.raises(KeyError, match="staged"):
        optimize(table, observe, parallelism=2, **ONE_BY_ONE)
    assert len(table.unindexed) == 2
    assert strays(table) == set()
    assert table.managed.read_state(LEASE_FILE) is None
    failed = [e for e in kept_events(table) if e["state"] == "failed"]
    assert [(e["error_code"], len(e["input_files_stats"]["files"])) for e in failed] == [("USE_INTERNAL", 1)]
    assert "failed" not in [r.state for r in optimize(table)]
    assert table.checksum() == before


@pytest.mark.slow
@pytest.mark.parametrize("how", ["CANCELLED", "INTERRUPTED"])
def test_asked_to_stop_it_ends_at_the_boundary(table, how):
    """By ``use.cancel``, and by the signal of Ctrl-C: what is under way is committed, nothing further begins."""
    run = run_of(table)
    handler = signal.getsignal(signal.SIGINT)

    def ask():
        if how == "CANCELLED":
            application().runs.cancel(run.run_id)
        else:
            os.kill(os.getpid(), signal.SIGINT)

    before = table.checksum()
    report = optimize(table, At(Step.WRITE, ask), run, **ONE_BY_ONE)
    assert [(r.state, r.reason) for r in report[1:]] == [("skipped", how)]
    assert report[0].state == "committed"
    assert "more may remain" in report[-1].message
    assert len(table.unindexed) == 2
    assert application().runs.live() == []
    assert signal.getsignal(signal.SIGINT) == handler
    assert table.managed.read_state(LEASE_FILE) is None
    assert table.checksum() == before


def test_a_commit_of_unknown_outcome_is_an_event(spark, tmp_path):
    """Nobody knows whether the log entry may still appear: the files stay, and the failure is on record."""
    path = f"deny://{tmp_path}/t"
    rows(spark, 0, 50).coalesce(1).write.format("delta").save(path)
    table = DeltaTable(spark, f"delta.`{path}`")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='a')")
    switch = spark._jvm.io.usespark.testing.DenyingFileSystem
    try:
        with pytest.raises(CommitUnknownError):
            optimize(table, At(Step.COMMIT, lambda: switch.deny("/t/_delta_log")))
    finally:
        switch.deny(None)
    assert len(strays(table)) == 1
    (event,) = kept_events(table)
    assert (event["state"], event["error_code"]) == ("failed", "USE_COMMIT_UNKNOWN")
    assert table.managed.read_state(LEASE_FILE) is None
    assert [r.state for r in optimize(table)] == ["committed"]
    assert check_placement(table) == table.data.count() == 50
