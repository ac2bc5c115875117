"""The quiet period on real tables: statements as a session without USE sends them, and then a run."""

import time
from functools import partial

import pytest
from fake_clock import FakeClock
from spark_jobs import at_most
from staging import optimize, run_of, settings_of

from catalog.insights.recent_statements import LoggedStatement
from catalog.settings.session_settings import STATEMENTS_ENABLED
from procedures.loop import commit_gate, table_optimizer
from procedures.loop.commit_gate import _LOOK_SECONDS
from procedures.process.application import Application, active

COLUMNS = "id BIGINT, day INT, customer INT"
MERGE = (
    "MERGE INTO {t} t USING (SELECT id, 2 AS day, CAST(id AS INT) AS customer FROM range(0, 2000, 30)) s "
    "ON t.day = 2 AND t.id = s.id WHEN MATCHED THEN UPDATE SET customer = 7 WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture(autouse=True)
def statements_of_delta(set_conf):
    set_conf(STATEMENTS_ENABLED.name, "false")


class ClockOfTheTest(FakeClock):
    """A clock that begins now, and on which something happens during each wait of a commit, in turn."""

    def __init__(self, *during_waits):
        super().__init__(time.time_ns() // 1_000_000)
        self.during_waits, self.waits = iter(during_waits), 0

    def wait(self, event, seconds):
        if seconds != _LOOK_SECONDS:
            return event.wait(seconds)  # the lease
        self.waits += 1
        next(self.during_waits, lambda: None)()
        return super().wait(event, seconds)


def filled(spark, table):
    """Files of three days, three of each."""
    for number in range(3):
        rows = spark.sql(f"SELECT id, CAST(id % 3 AS INT) day, CAST(id % 50 AS INT) customer FROM range({number}, 900)")
        table.append(rows.repartitionByRange(3, "day"), files=3)
    return table


def optimized(table, clock, **given):
    with active(Application(clock=clock)) as app:
        settings = settings_of(quiet_period="10 minutes", **given)
        return table_optimizer.optimize(table.managed, settings, run_of(table), app=app)


def outline(report):
    return [(row.state, row.strategy, row.reason) for row in report if row.reason != "READ_COST_BELOW_TARGET"]


def days(files):
    return {file.stats["minValues"].get("day", file.path.split("/")[0]) for file in files}


@pytest.mark.slow
def test_the_newest_partition_is_left_until_it_has_been_quiet(spark, new_table):
    table = filled(spark, new_table(COLUMNS, index="customer,id", tail="PARTITIONED BY (day)"))
    table.sql(MERGE)
    before = table.checksum()
    clock = ClockOfTheTest()
    report = optimized(table, clock)
    assert ("committed", "UnindexedFiles", "UNINDEXED") in outline(report)
    assert outline(report)[-1] == ("skipped", None, "CHANGED_RECENTLY")
    assert days(table.unindexed) == {"day=2"}
    assert report[-1].input_files == len(table.unindexed)
    # The condition names the partition: no statement reads another one, and no commit waits.
    assert clock.waits == 0
    with at_most(spark, 0):
        again = optimized(table, clock, dry_run=True)
    assert outline(again)[-1] == ("skipped", None, "CHANGED_RECENTLY")
    clock.go_on(601_000)
    assert "CHANGED_RECENTLY" not in [row.reason for row in optimized(table, clock)]
    assert not table.unindexed
    assert table.checksum() == before


@pytest.fixture
def some_pause(monkeypatch):
    """Each pause is long enough for a commit that is held, and for no other."""
    monkeypatch.setattr(commit_gate, "next_pause", lambda _: 1_000)


def test_a_table_without_partitions_is_committed_after_a_statement(spark, new_table, some_pause):
    """The range of the newest day is left, and the rewrite of the others is in the log right after a merge."""
    table = filled(spark, new_table(COLUMNS, index="day,customer"))
    table.sql(MERGE)
    merges = [partial(table.sql, MERGE.replace("customer = 7", f"customer = {n}")) for n in (8, 9)]
    clock = ClockOfTheTest(*merges)
    report = optimized(table, clock, max_iterations=1, strategy="UnindexedFiles")
    assert days(table.unindexed) == {2}
    (version,) = (row.version for row in report if row.state == "committed")
    operations = [table.commit_info(number)["operation"] for number in range(version - 2, version + 1)]
    assert operations == ["MERGE", "MERGE", "USE OPTIMIZE"]
    assert clock.waits == 2


@pytest.mark.slow
def test_a_commit_whose_check_took_too_long_waits_for_the_next_statement(spark, new_table, some_pause, monkeypatch):
    table = filled(spark, new_table(COLUMNS, index="day,customer"))
    table.sql(MERGE)
    clock = ClockOfTheTest(*(partial(table.sql, MERGE.replace("customer = 7", f"customer = {n}")) for n in (8, 9, 10)))
    wait, asked = commit_gate.CommitGate.wait_for_pause, []

    def slow_check(gate, version):
        asked.append(wait(gate, version))
        clock.go_on(2_000 if len(asked) == 1 else 0)
        return asked[-1]

    monkeypatch.setattr(commit_gate.CommitGate, "wait_for_pause", slow_check)
    report = optimized(table, clock, max_iterations=1, strategy="UnindexedFiles")
    (version,) = (row.version for row in report if row.state == "committed")
    operations = [table.commit_info(number)["operation"] for number in range(version - 3, version + 1)]
    assert operations == ["MERGE", "MERGE", "MERGE", "USE OPTIMIZE"]
    # After the check of the third merge, the pause is long enough.
    assert asked == [version - 1, version, version]


@pytest.mark.slow
def test_a_run_that_is_stopped_while_its_commit_is_held_leaves_nothing(spark, new_table, some_pause):
    table = filled(spark, new_table(COLUMNS, index="day,customer"))
    table.sql(MERGE)
    run = run_of(table)
    clock = ClockOfTheTest(lambda: table.sql(MERGE), lambda: run.request_stop("CANCELLED", "cancelled"))
    with active(Application(clock=clock)) as app:
        settings = settings_of(quiet_period="10 minutes", max_iterations=1, strategy="UnindexedFiles")
        report = table_optimizer.optimize(table.managed, settings, run, app=app)
    assert not [row for row in report if row.state == "committed"]
    assert table.commit_info(table.version)["operation"] == "MERGE"
    live = {file.path for file in table.files}
    former = {path for version in range(table.version + 1) for path in table.removed(version)}
    assert {str(file.relative_to(table.path)) for file in table.path.rglob("*.parquet")} <= live | former


@pytest.mark.slow
def test_appends_and_rewrites_of_ours_are_no_statements(spark, new_table):
    table = new_table(COLUMNS, index="day,customer")
    rows = spark.sql("SELECT id, 1 day, CAST(id AS INT) customer FROM range(100)")
    rows.write.format("qbeast").mode("append").saveAsTable(table.name)
    table.append(rows)
    optimize(table)
    texts = [file.read_text(encoding="utf-8") for file in sorted((table.path / "_delta_log").glob("*.json"))]
    assert [LoggedStatement.of(text) for text in texts] == [None] * len(texts)
    table.sql("DELETE FROM {t} WHERE id = 5")
    text = (table.path / "_delta_log" / f"{table.version:020d}.json").read_text(encoding="utf-8")
    assert LoggedStatement.of(text).compared == {"id"}
