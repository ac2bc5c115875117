"""SortedRunCompaction from end to end: rows stay, the budget is kept in tags, and it ends."""

import json

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

from catalog.insights.consumption import add_scans
from procedures.groups.read_costs import Regions

STRATEGY = "UnindexedFiles,SortedRunCompaction"
LIMIT = "use.optimization.maxWriteAmplification"


def appended(spark, table, times, rows=500, **arguments):
    """Appends and indexes, in turn; the ends of the space come first, so that no later row leaves it."""
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    for number in range(times):
        table.append(numbers(spark, rows, start=number * rows)).optimize(strategy="UnindexedFiles", **arguments)
    return table


def rewrites(table):
    """Mean number of times that a row was rewritten, by bytes, as the log tells it."""
    files = list(table.replayed()[0].values())
    return sum(float(f["tags"].get("use.rewrites", 0)) * f["size"] for f in files) / sum(f["size"] for f in files)


def test_small_runs_are_merged_and_every_row_stays(spark, new_table):
    table = appended(spark, new_table(NUMBERS, index="x,s", cube_size=300, file_bytes="1mb"), 3)
    before, files = table.checksum(), len(table.files)
    assert rewrites(table) == pytest.approx(1.0)

    (planned, *_) = table.optimize(strategy=STRATEGY, dry_run=True)
    assert planned.reason.startswith("WEIGHTS_")
    assert "reads cost" in planned.message
    assert planned.read_cost_before > 1.25 > planned.read_cost_after

    report = table.optimize(strategy=STRATEGY)
    assert {r.state for r in report[:-1]} == {"committed"}
    assert table.checksum() == before
    assert len(table.files) < files
    assert check_placement(table) == 1502
    assert 1.0 < rewrites(table) <= 4.0

    # What was expected of the last group, and what came out.
    assert report[-1].reason == "READ_COST_BELOW_TARGET"
    assert report[-1].read_cost_before == pytest.approx(report[-2].read_cost_after, abs=0.2)

    state = table.state()
    assert [r.state for r in table.optimize(strategy=STRATEGY)] == ["skipped"]
    assert table.state() == state


@pytest.mark.slow
def test_recorded_reads_pay_for_merges(spark, new_table):
    """Whatever the target is: a table that nobody reads is left alone, and one that is read often is merged."""
    table = appended(spark, new_table(NUMBERS, index="x,s", cube_size=300, file_bytes="1mb"), 3)
    # This read is not recorded.
    before = table.checksum()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.insights.consumption.enabled' = 'true')")
    (waiting,) = table.optimize()
    assert (waiting.reason, waiting.state) == ("RECORDED_READS_TOO_FEW", "skipped")
    assert "no read was recorded" in waiting.message

    snapshot = table.managed.snapshot()
    later = int(snapshot.file_table.modification_time.max()) + 1

    def record(scans):
        facts = {"table_id": snapshot.table_id, "application_id": "a", "scan": 0, "sample_fraction": 0.01}
        facts |= {"filters": [], "rows_read": 15, "rows_kept": 15}
        lines = [json.dumps(facts | {"execution_id": n, "finished_at": later + n}) for n in range(scans)]
        add_scans(table.managed, "\n".join(lines), later + scans)

    record(1)
    report = table.optimize()
    assert [(r.reason, r.state) for r in report] == [("RECORDED_READS_TOO_FEW", "skipped")]
    record(500)
    report = table.optimize()
    assert "committed" in {r.state for r in report}
    assert "have paid for the group" in report[0].message
    assert table.checksum() == before


@pytest.mark.slow
def test_the_budget_of_the_table_is_kept(spark, new_table):
    table = appended(spark, new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="1mb"), 2)
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{LIMIT}'='1')")
    state = table.state()
    report = table.optimize(strategy="SortedRunCompaction")
    assert (report[0].state, report[0].reason) == ("skipped", "WRITE_AMPLIFICATION")
    assert table.state() == state
    assert report[0].read_cost_before > 1.25


@pytest.mark.slow
def test_statistics_become_quantiles_of_every_type(spark, new_table):
    schema = "id BIGINT, n DECIMAL(10,2), d DATE, t TIMESTAMP, s STRING"
    table = new_table(schema, index="n,d,t,s", cube_size=300, file_bytes="1mb")

    def rows_from(low, high, step=1):
        return spark.range(low, high, step).select(
            "id",
            F.col("id").cast("decimal(10,2)").alias("n"),
            F.date_add(F.lit("2020-01-01").cast("date"), F.col("id").cast("int")).alias("d"),
            F.timestamp_seconds(F.col("id") * 1000).alias("t"),
            F.format_string("%08d", F.col("id")).alias("s"),
        )

    # Its ends come first, so that no later row leaves the space.
    table.append(rows_from(0, 1300, 1299)).optimize(strategy="UnindexedFiles")
    for low in (1, 1000):
        table.append(rows_from(low, low + 299)).optimize(strategy="UnindexedFiles")
    snapshot = table.managed.snapshot()
    columns = Regions.of(snapshot.file_table)
    assert (columns.high >= columns.low).all()
    # Two batches with values apart: one ends where the other begins.
    whole = columns.rows >= 299
    assert whole.sum() == 2
    for column in range(4):
        first, second = sorted((columns.low[i, column], columns.high[i, column]) for i in whole.nonzero()[0])
        assert first[0] == pytest.approx(0.0, abs=0.01)
        assert first[1] == pytest.approx(second[0], abs=0.02)
        assert second[1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.slow
def test_a_story_of_appends_deletes_and_updates_keeps_rows_and_budget(spark, new_table):
    table = appended(spark, new_table(NUMBERS, index="x,y", cube_size=1000, file_bytes="40kb"), 0)
    for number in range(12):
        table.append(numbers(spark, 500, start=number * 500), files=1)
        if number % 4 == 3:
            table.sql(f"DELETE FROM {{t}} WHERE id % 40 = {number}")
            table.sql(f"UPDATE {{t}} SET s = 'again' WHERE id % 40 = {number + 1}")
            before = table.checksum()
            table.optimize()
            assert table.checksum() == before
            assert rewrites(table) <= 4.0
    check_placement(table)
    state = table.state()
    assert all(r.state == "skipped" for r in table.optimize())
    assert table.state() == state
