"""The simulation of a fleet ranks as the product does, and the ranking is better than other policies."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.fleet.offer import Offer, saved_per_scan
from procedures.fleet.outcomes import Outcome, correction
from procedures.fleet.ranking import priority
from procedures.fleet.reads import ReadRate, RecordedUse
from procedures.groups.group import InputFile, Relayout

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))

import fleet_policies as policies
import fleet_simulation as simulation
from fleet_histories import history

SEED, TABLES, DAYS = 8, 400, 7
TARGET = 128_000_000


def _plan(backlog, merged):
    def group(size, revision, read_cost):
        files = (InputFile(f"f{revision}", "", size, None, -1, 0, 0),)
        return Relayout("S", revision, "R", files, read_cost=read_cost)

    merge = [group(merged, 1, (1.0, 1.0))] if merged else []
    return [group(backlog, 0, None), *merge]


@given(
    st.integers(1, 10**12),
    st.integers(0, 10**12),
    st.integers(0, 10**13),
    st.floats(0, 1e5),
    st.floats(0, 3),
    st.floats(0, 1),
    st.floats(1 / 16, 4),
    st.integers(0, 10**10),
    st.booleans(),
)
def test_the_simulation_ranks_as_the_product_does(backlog, merged, rest, scans, days, share, factor, waited, is_read):
    rate = ReadRate.of(RecordedUse(scans, days, share))
    size = backlog + merged + rest
    offer = Offer.of(_plan(backlog, merged), rate, size, TARGET, factor, is_read)

    per_day, share_read = policies.rates(np.array([scans]), np.array([scans * share]), days)
    assert per_day[0] == pytest.approx(rate.scans_per_day)
    assert share_read[0] == pytest.approx(rate.share_read)
    saved = policies.saved_bytes(np.array([float(backlog)]), share_read, np.array([float(size)]))
    assert saved[0] == pytest.approx(saved_per_scan(_plan(backlog, merged), rate.share_read, size, TARGET))
    costs = np.array([float(backlog + merged)])
    value = policies.priorities(saved * per_day * factor, costs, np.array([float(waited)]), np.array([is_read]))
    if offer.saving_per_byte == pytest.approx(0.2):
        return
    assert value[0] == pytest.approx(priority(offer, waited))


@given(st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5))
def test_the_simulation_corrects_as_the_product_does(earlier):
    story = history(1, SEED, 1)
    fleet, ours = policies.Fleet(story), policies.Ours(story)
    fleet.last[0] = 0
    for predicted, before, after in earlier:
        ours.predicted[0], ours.before[0] = predicted, before
        fleet.scans_since[0], fleet.shares_since[0] = 10.0, 10.0 * after
        ours.choose(fleet, np.array([0]))
    judged = [Outcome(0, 1, predicted, before, 1.0).judged(10, after) for predicted, before, after in earlier]
    assert np.exp(ours.logarithm[0]) == pytest.approx(correction(judged))


@pytest.fixture(scope="module")
def story():
    return history(TABLES, SEED, DAYS)


def test_ours_saves_more_than_other_policies(story):
    complete = simulation.everything(story)
    budget = 0.1 * complete.cost / DAYS
    found = {name: simulation.simulated(story, make(story), budget) for name, make in policies.POLICIES.items()}
    (bound,) = simulation.hindsight(story, [0.1 * complete.cost])
    assert all(fleet.cost <= 0.1 * complete.cost * (1 + 1e-9) for fleet in found.values())
    assert all(found["ours"].saved > fleet.saved for name, fleet in found.items() if name != "ours")
    assert found["ours"].saved <= bound <= complete.saved
    assert found["ours"].useless <= 0.05 * found["ours"].count
    assert found["round robin"].useless > 0.2 * found["round robin"].count


def test_the_same_seed_gives_the_same_figures(story):
    again = history(TABLES, SEED, DAYS)
    one, other = (simulation.simulated(s, policies.Ours(s), 1e10) for s in (story, again))
    assert (one.saved, one.count) == (other.saved, other.count)


def test_constants_are_put_back():
    before = simulation.ranking.DOUBLING_MILLIS
    with simulation.changed(((simulation.ranking, "DOUBLING_MILLIS", 1.0),)):
        assert simulation.ranking.DOUBLING_MILLIS == 1.0
    assert before == simulation.ranking.DOUBLING_MILLIS
