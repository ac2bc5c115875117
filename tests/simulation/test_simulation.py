"""Histories of a table keep what the product promises; `make simulate` runs many more of them."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation import coverage
from simulation.simulation import histories, simulate

HISTORIES, PART = 2000, 250


@pytest.mark.parametrize("first", range(0, HISTORIES, PART))
def test_histories_keep_every_promise(first):
    for history in histories(range(first, first + PART)):
        assert history.violation is None, f"{history.violation}; repeat it: make simulate COUNT=1 SEED={history.seed}"


@pytest.mark.parametrize("seed", [3, 26, 119])
def test_a_seed_makes_the_same_history_again(seed):
    assert simulate(seed, records=True).text() == simulate(seed, records=True).text()


def test_a_violation_ends_the_history_and_shows_in_it(monkeypatch):
    monkeypatch.setattr("simulation.delta_log.DeltaLog._check", lambda *_: None)
    failed = next(history for history in map(simulate, range(200)) if history.violation is not None)
    again = simulate(failed.seed, records=True)
    assert again.violation == failed.violation
    assert "VIOLATION" in again.text(last=5)
    assert again.text().endswith(f"violation: {failed.violation}")


def test_faults_strike_in_many_phases():
    phases = Counter()
    for seed in range(60):
        simulate(seed, phases)
    empty = coverage.empty_fields(phases)
    assert len(empty) < len(coverage.PHASES) * len(coverage.FAULTS) * 0.6
    assert f"{phases['commit', 'clock skew']:,}" in coverage.table(phases)
