"""The doctor of a table: what is set, what is not, what to do first."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tables import NUMBERS, numbers

from procedures.insight.health.remedy import Advice, AdviceStep, Remedy
from sql_ext.commands.command_line import cli
from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding
from sql_ext.commands.doctor_checks.table_setup import TableFacts, table_findings
from sql_ext.commands.exits import ExitCode

OVERVIEW = {
    "name": "spark_catalog.db.t", "location": "file:/wh/t", "version": 7, "files": 10, "rows": 5000, "bytes": 1_000_000,
    "index_columns": ["a", "b"], "revisions": 1, "unindexed_files": 1, "unindexed_bytes": 20_000,
    "automatic": {"type": "UnindexedFiles", "state": "scheduled"},
}  # fmt: skip
SET = {
    "use.retention.hours": "720",
    "use.insights.consumption.enabled": "true",
    "use.log.consolidation.interval": "1 hour",
}


def part(name, value, lost=0.0, advice=None):
    return {"part": name, "value": value, "unit": "commits", "points_lost": lost, "advice": advice}


HEALTH = [part("total", 100.0), part("log_length", 3.0)]
FACTS = TableFacts("db.t", "--warehouse wh --table db.t", OVERVIEW, HEALTH, SET, [])


def seen(**changes):
    return {finding.check: finding for finding in table_findings(replace(FACTS, **changes))}


def overview(**changes):
    return {"overview": {**OVERVIEW, **changes}}


def test_a_table_with_everything_set():
    findings = seen()
    assert {finding.state for finding in findings.values()} == {OK}
    assert list(findings) == [
        *("table", "write access", "index", "unindexed", "health", "automatic", "retention", "insights", "log", "first")
    ]
    assert findings["first"].message == "nothing to do"
    assert findings["table"].message == "spark_catalog.db.t, version 7: 10 files, 5,000 rows, 1.0 MB"
    assert findings["unindexed"].message == "1 file, 2 % of the bytes"
    assert findings["retention"].message == "removed files 7 days, log 30 days; deleted automatically after 720 hours"
    assert findings["insights"].message == "recorded: consumption"
    assert findings["log"].message == "3 commits; consolidated automatically"


@pytest.mark.parametrize(
    ("changes", "check", "state", "text"),
    [
        ({"write_error": "USE_WRITE_DENIED: no"}, "write access", FAIL, "allow this user"),
        ({"errors": ["x is wrong", "y is wrong"]}, "properties", FAIL, "x is wrong (1 more)"),
        (overview(automatic={"type": None, "state": "off"}), "automatic", WARN, "autoOptimize.enabled' = 'true'"),
        (overview(automatic={"type": "x", "state": "suspended"}), "automatic", WARN, "use-spark resume --warehouse wh"),
        ({"configuration": {}}, "retention", WARN, "use.retention.hours' = '720'"),
        ({"configuration": {"use.retention.hours": "x"}}, "retention", WARN, "use.retention.hours"),
    ],
)
def test_what_is_missing_comes_first(changes, check, state, text):
    findings = seen(**changes)
    finding = findings[check]
    assert (finding.state, text in finding.line) == (state, True), finding.line
    first = findings["first"]
    assert (first.state, first.message.startswith(f"{check}: "), first.advice) == (state, True, finding.advice)


def test_the_adviser_comes_first():
    """In its own order, and before what is a matter of choice; only what fails comes before it."""
    steps = (
        AdviceStep(Advice(Remedy.MERGE, "CALL use.x"), 2_000_000, "Why."),
        AdviceStep(Advice(Remedy.LOG, "CALL use.y"), 1, "Y."),
    )
    changes = {"steps": steps, "health": [part("total", 70.0), part("small_files", 9, 20.0)], "configuration": {}}
    findings = seen(**changes)
    assert findings["health"].advice == "CALL use.x; CALL use.y"
    first = findings["first"]
    assert (first.state, first.message, first.advice) == (WARN, "Why. A read saves about 2.0 MB.", "CALL use.x")
    assert seen(write_error="USE_WRITE_DENIED: no", **changes)["first"].state == FAIL


def test_a_table_without_an_index_has_nothing_to_mend():
    findings = seen(**overview(index_columns=None))
    assert (findings["index"].state, "use-spark recommend" in findings["index"].advice) == (OK, True)
    assert findings["first"].message == "nothing to do"
    assert seen(**overview(unindexed_bytes=60_000))["unindexed"].state == WARN


def test_a_failure_comes_before_a_warning():
    findings = seen(errors=["x is wrong"], **overview(automatic={"type": "x", "state": "suspended"}))
    assert findings["first"].message == "properties: x is wrong"


def test_a_long_line_is_broken_before_its_advice():
    finding = Finding("index", WARN, "none", "set one")
    assert finding.fitted(80) == "warn  index        none -> set one"
    assert finding.fitted(20).splitlines() == ["warn  index        none", "                   -> set one"]
    finding = Finding("table", OK, "t, version 4: 3 files, 201,000 rows, 3.0 MB")
    assert finding.fitted(50).splitlines() == [
        "ok    table        t, version 4: 3 files, 201,000",
        "                   rows, 3.0 MB",
    ]


@pytest.mark.parametrize("automatic", [{"type": None, "state": "off"}, {"type": "UnindexedFiles", "state": "on"}])
def test_no_service_of_the_catalog_finds_a_path(automatic):
    changes = overview(automatic=automatic)
    finding = seen(options="--table /data/t", is_listed=False, **changes)["automatic"]
    assert finding.state == WARN
    assert "known by its path only" in finding.message
    assert "use-spark service --table /data/t" in finding.advice
    assert ("ALTER TABLE" in finding.advice) == (automatic["type"] is None)
    assert "use-spark service" not in seen(**changes)["automatic"].line


@pytest.mark.slow
def test_tables_that_an_index_does_not_suit(spark):
    def rows_about(name):
        done = CliRunner().invoke(cli, ["doctor", name, "--json"])
        return {row["check"]: row for row in map(json.loads, done.stdout.splitlines())}

    clustered, of_parquet = "default.clustered_by", "default.of_parquet"
    spark.sql(f"CREATE TABLE {clustered} (id INT) USING delta CLUSTER BY (id)")
    spark.sql(f"CREATE TABLE {of_parquet} (id INT) USING parquet")
    try:
        spark.sql(f"ALTER TABLE {clustered} SET TBLPROPERTIES ('use.index.columns' = 'id')")
        first = rows_about(clustered)["first"]
        assert ("clusters by id" in first["message"], first["advice"].split()[-3:]) == (True, ["CLUSTER", "BY", "NONE"])
        assert "--convert" in rows_about(of_parquet)["table"]["advice"]
    finally:
        spark.sql(f"DROP TABLE {clustered}")
        spark.sql(f"DROP TABLE {of_parquet}")


def test_a_table_alone():
    result = CliRunner().invoke(cli, ["doctor", "t", "--table=u"])
    assert (result.exit_code, "checked alone" in result.stderr) == (ExitCode.USAGE, True)


def test_on_a_table(spark, new_table, tmp_path):
    table = new_table(NUMBERS, index="x,y", cube_size=100).append(numbers(spark, 300))
    version = table.version
    done = CliRunner().invoke(cli, ["doctor", table.name, "--json"])
    rows = {row["check"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert (done.exit_code, rows["index"]["message"][:4]) == (ExitCode.DONE, "x, y"), done.output
    assert rows["first"]["advice"] == f"CALL use.optimize('{table.managed.name}')"
    assert table.version == version
    shown = CliRunner().invoke(cli, ["doctor", str(table.path)]).stdout
    assert f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES" in shown
    assert len(shown.splitlines()) <= 11
    assert "by its path only" not in shown  # its location is that of a table of the catalog
    path = tmp_path / "unregistered"
    numbers(spark, 3).write.format("delta").save(str(path))
    shown = CliRunner().invoke(cli, ["doctor", str(path)]).stdout
    assert f"then use-spark service --table {path}" in shown
    missing = CliRunner().invoke(cli, ["doctor", "no_such"])
    assert (missing.exit_code, "USE_TABLE_NOT_FOUND" in missing.stdout) == (ExitCode.FAILED, True)
