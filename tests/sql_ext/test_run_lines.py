"""The lines that ``use-spark service`` prints, without Spark."""

import os
import time

import pytest

from procedures.declare.runs import Stop
from procedures.loop.report import COMMITTED, FAILED, LEASE_HELD, OptimizeRow, nothing_row
from procedures.service.ended_run import EndedRun
from procedures.service.execution import totals_of
from procedures.service.service_metrics import RunTotals
from sql_ext.commands.run_lines import RunLines, run_text

REWRITTEN = totals_of(
    [
        OptimizeRow(1, "UnindexedFiles", "UNINDEXED", COMMITTED, 12, 1_200_000, 3, 1_100_000, 9, 4, 700, ""),
        OptimizeRow(2, "UnindexedFiles", "UNINDEXED", COMMITTED, 1, 800_000, 1, 100_000, 9, 5, 700, ""),
    ]
)


@pytest.fixture
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _run(**facts):
    return EndedRun("db.t", 1_700_000_000_000, 42_000, **facts)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, "nothing to do"),
        ({"totals": REWRITTEN}, "UNINDEXED (UnindexedFiles) 13 files (2.0 MB) -> 4 files (1.2 MB)"),
        (
            {"totals": REWRITTEN, "saving": 3_000_000.4},
            "UNINDEXED (UnindexedFiles) 13 files (2.0 MB) -> 4 files (1.2 MB); saves reads about 3.0 MB per day",
        ),
        ({"problems": ("USE_X: broken",)}, "FAILED USE_X: broken"),
        ({"maintained": ("reclamation",)}, "maintenance reclamation"),
        ({"has_conflict": True}, "nothing rewritten, because a concurrent write had priority"),
        ({"totals": RunTotals(lease_held=True)}, "another run holds the lease of the table"),
        ({"stop": Stop("CANCELLED", "run 7 was cancelled")}, "stopped, CANCELLED: run 7 was cancelled"),
        (
            {"totals": totals_of([OptimizeRow(1, "S", "USE_CONFLICT", FAILED, 1, 1, 0, 0, 0, None, 1, "")])},
            "1 group failed (USE_CONFLICT)",
        ),
        ({"refusal": "BUDGET_USED_UP: later", "stop": Stop("BUDGET_USED_UP", "later")}, "BUDGET_USED_UP: later"),
    ],
)
def test_the_text_of_a_run(facts, text):
    assert run_text(_run(**facts)) == text


@pytest.mark.usefixtures("utc")
def test_a_line_has_time_table_and_duration():
    lines = []
    RunLines(lines.append)(_run())
    assert os.environ["TZ"] == "UTC"
    assert lines == ["2023-11-14 22:13:20 db.t: nothing to do in 42.0 s"]


def test_a_wait_that_is_tried_again_is_printed_once():
    lines = []
    print_line = RunLines(lines.append)
    waits, refused = _run(totals=RunTotals(lease_held=True)), _run(refusal="BUDGET_USED_UP: 5 of 5 bytes")
    for run in (waits, waits, refused, _run(refusal="BUDGET_USED_UP: 6 of 5 bytes"), waits, _run(), waits):
        print_line(run)
    assert len(lines) == 5
    failed = _run(problems=("USE_X: broken",))
    print_line(failed)
    print_line(failed)
    assert len(lines) == 7


def test_a_lease_of_another_run_has_no_reason():
    totals = totals_of([nothing_row(0, LEASE_HELD, None, "")])
    assert totals.reasons == ()
