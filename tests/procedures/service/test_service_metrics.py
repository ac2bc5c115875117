"""Metrics of the service, without Spark: what a run counts, and which tables are queued."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from service_fakes import FakeService

from catalog.errors import ConcurrentChangeError, UseError
from catalog.state import automation
from catalog.state.automation import Automation
from procedures.declare.runs import Stop
from procedures.loop.report import COMMITTED, FAILED, LEASE_HELD, PLANNED, SKIPPED, OptimizeRow, nothing_row
from procedures.service import service_metrics
from procedures.service.ended_run import EndedRun
from procedures.service.execution import totals_of
from procedures.service.service_metrics import (
    METRICS,
    OTHER_TABLES,
    SERVICE_METRICS,
    TABLE_FAILED_RUNS,
    TABLE_INPUT_BYTES,
    TABLE_METRICS,
    TABLE_RUNS,
    RunTotals,
    ServiceMetrics,
)

DOCS = Path(__file__).parents[3] / "docs"


def _row(state, input_bytes, output_bytes):
    return OptimizeRow(0, "S", "R", state, 1, input_bytes, 1, output_bytes, 1, 1, 1, "")


def _values(metrics, tables=(), now=0):
    samples = metrics.samples(tables, now)
    return {(s.metric.name.removeprefix("use_service_"), s.label_value): s.value for s in samples if s.value}


def test_only_committed_groups_count_as_bytes():
    rows = [_row(COMMITTED, 10, 7), _row(COMMITTED, 5, 4), _row(FAILED, 100, 0), _row(SKIPPED, 200, 0)]
    assert totals_of([*rows, _row(PLANNED, 300, 0)]) == RunTotals(
        15, 11, 1, input_files=2, output_files=2, reasons=("R (S)",), failures=("R",)
    )
    assert totals_of([nothing_row(0, LEASE_HELD, None, "")]) == RunTotals(lease_held=True)


def test_runs_add_up_and_zeros_are_shown():
    metrics = ServiceMetrics()
    assert _values(metrics) == {}
    assert len(metrics.samples((), 0)) == sum(len(m.label_values) or 1 for m in METRICS)
    metrics.record_run("completed", RunTotals(10, 7))
    metrics.record_run("failed", RunTotals(5, 4, 2))
    assert _values(metrics) == {
        ("runs_total", "completed"): 1,
        ("runs_total", "failed"): 1,
        ("input_bytes_total", None): 15,
        ("output_bytes_total", None): 11,
        ("conflicting_groups_total", None): 2,
    }


def test_the_first_tables_have_series_of_their_own():
    metrics = ServiceMetrics(2)
    for table, outcome in (
        ("a", "failed"),
        ("b", "completed"),
        ("c", "completed"),
        ("a", "completed"),
        ("d", "failed"),
    ):
        metrics.record_run(outcome, RunTotals(10, 7), table)
    values = {(s.metric, s.label_value): s.value for s in metrics.samples((), 0) if s.metric in TABLE_METRICS}
    assert {label for _, label in values} == {"a", "b", OTHER_TABLES}
    assert [values[TABLE_RUNS, table] for table in ("a", "b", OTHER_TABLES)] == [2, 1, 2]
    assert [values[TABLE_FAILED_RUNS, table] for table in ("a", "b", OTHER_TABLES)] == [1, 0, 1]
    assert values[TABLE_INPUT_BYTES, OTHER_TABLES] == 20


def test_each_round_sends_the_numbers_and_gets_those_of_reads():
    sent = []

    def exchange(numbers):
        sent.append(dict(numbers))
        return {**numbers, "recorded_scans_total": 3, "recorded_skipped_bytes_total.cubes": 700}

    fake = FakeService(exchange=exchange)
    fake.tables.put("t", {"use.optimization.type": "UnindexedFiles"})
    fake.tick()
    fake.service.tick(look=False)
    assert sent[-1]["service_runs_total.completed"] == 1
    assert sent[-1].keys() == {m.spark_name(v) for m in SERVICE_METRICS for v in m.label_values or (None,)}
    values = {(s.metric.name, s.label_value): s.value for s in fake.metrics.samples((), 0)}
    assert values["use_recorded_scans_total", None] == 3
    assert values["use_recorded_skipped_bytes_total", "cubes"] == 700
    assert values["use_recorded_skipped_bytes_total", "weights"] == 0


def test_a_failed_exchange_stops_no_round():
    def exchange(_numbers):
        raise UseError("x", code="USE_X", sql_state="58000")

    fake = FakeService(exchange=exchange)
    fake.tables.put("t", {"use.optimization.type": "UnindexedFiles"})
    assert fake.tick() == ["t"]


def test_tables_that_are_due_are_queued():
    def table(name, state, next_run=None):
        return Automation(name, f"/{name}", state, next_run=next_run)

    tables = [
        table("due", automation.SCHEDULED, 100),
        table("later", automation.SCHEDULED, 101),
        table("by_trigger", automation.SCHEDULED),
        table("waiting", automation.WAITING, 500),
        table("retry", automation.FAILED, 50),
        table("running", automation.RUNNING),
        table("suspended", automation.SUSPENDED, 50),
    ]
    values = _values(ServiceMetrics(), tables, 100)
    assert values.pop(("queued_tables", None)) == 3
    assert values == {
        ("tables", "scheduled"): 3,
        ("tables", "waiting"): 1,
        ("tables", "failed"): 1,
        ("tables", "running"): 1,
        ("tables", "suspended"): 1,
    }


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "completed"),
        (UseError("x", code="USE_X", sql_state="58000"), "failed"),
        (ConcurrentChangeError("x"), "conflict"),
    ],
)
def test_the_service_counts_its_runs(error, outcome):
    fake = FakeService()
    fake.engine.error = error
    fake.tables.put("t", {"use.optimization.type": "UnindexedFiles"})
    assert fake.tick() == ["t"]
    assert _values(fake.metrics) == {("runs_total", outcome): 1}


def test_the_outcome_of_a_run():
    run = EndedRun("t", 0, 0)
    assert replace(run, totals=RunTotals(lease_held=True)).outcome == "lease_held"
    assert replace(run, totals=RunTotals(conflicting_groups=1)).outcome == "completed"
    assert replace(run, totals=RunTotals(conflicting_groups=1, ended_by_conflict=True)).outcome == "conflict"
    assert replace(run, stop=Stop("YIELDED", "")).outcome == "stopped"


def test_the_page_lists_the_metrics():
    rows = re.findall(
        r"^\| `(use_\w+)` \| (\w+) \| (?:`(\w+)` )?\| (.+) \|$", (DOCS / "monitoring.md").read_text(), re.MULTILINE
    )
    assert rows == [(m.name, m.kind, m.label or "", m.doc) for m in (*METRICS, *TABLE_METRICS)]
    for outcome in service_metrics.RUN_OUTCOMES:
        assert f"| `{outcome}` |" in (DOCS / "monitoring.md").read_text()


def test_the_dashboard_shows_existing_metrics():
    panels = json.loads((DOCS / "grafana-dashboard.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    assert all("use_" in expression for expression in expressions)
    assert set(re.findall(r"\buse_\w+", " ".join(expressions))) == {m.name for m in METRICS}
