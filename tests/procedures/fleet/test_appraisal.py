"""An appraisal judges the newest turn by recorded reads, and stores that only where the table may be changed."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fake_clock import FakeClock
from folders import folder_table
from optimizer_fakes import FakeTable
from staging import settings_of

from catalog.insights.recorded_scans import ScanTotals
from catalog.table.managed_table import ManagedTable
from procedures.declare.runs import CALL, Run
from procedures.fleet import appraisal
from procedures.fleet.outcome_files import TurnRecord, store_turns, turns_of
from procedures.fleet.outcomes import Outcome


@pytest.mark.parametrize("stores", [True, False])
def test_what_reads_have_saved_is_stored_unless_the_caller_only_looks(monkeypatch, tmp_path, stores):
    clock, table = FakeClock(), folder_table(tmp_path)
    snapshot = SimpleNamespace(
        settings={"use.insights.consumption.enabled": "true"},
        bytes=100,
        file_table=SimpleNamespace(rows=np.array([10])),
    )
    monkeypatch.setattr(ManagedTable, "snapshot", lambda _: snapshot)
    monkeypatch.setattr(appraisal, "planner_of", lambda *_: FakeTable(clock, (10, 20)))
    monkeypatch.setattr(appraisal, "described_jobs", lambda *_: nullcontext())
    monkeypatch.setattr(appraisal, "scan_totals", lambda *_: ScanTotals(5, 5.0, 1, 0.5))
    known = TurnRecord(1, (Outcome(2, 30, 0.5, 0.75, 1000.0),))
    store_turns(table, known)
    run = Run("t", "file:/t", CALL, {}, clock.now())
    appraised = appraisal.appraise(table, settings_of(), run, clock, stores=stores)
    assert (appraised.offer.cost, appraised.offer.is_recorded) == (30, True)
    judged = replace(known.outcomes[0], measured=0.25)
    assert turns_of(table) == (TurnRecord(1, (judged,)) if stores else known)
