"""The ledger of a fleet: budgets hold, whoever writes at the same time, and whatever happens to a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_fakes import FakeTexts

from catalog.errors import ConcurrentChangeError
from catalog.properties.fleet_properties import Pool
from catalog.state.fleet_ledger import (
    KEPT_MILLIS,
    RUN_MILLIS,
    TOO_LARGE,
    TOO_MANY_RUNS,
    USED_UP,
    FleetLedger,
    LedgerState,
    OpenRun,
    Spending,
)
from catalog.state.state_files import Unreadable

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 1_000 * DAY
SHOP, ALL = Pool("shop", 100, DAY, None), Pool(None, 150, DAY, None)


def _spend(ledger, pools, database, size, now=NOW):
    return ledger.change(lambda state: state.spend(pools, database, size, now))


def _run(number, database="shop", now=NOW):
    return OpenRun(f"r{number}", f"t{number}", database, "host:1", now + RUN_MILLIS)


def test_bytes_are_spent_until_the_budget_is_used_up():
    ledger = FleetLedger(FakeTexts())
    assert _spend(ledger, [SHOP], "shop", 60) is None
    refusal = _spend(ledger, [SHOP], "shop", 60, NOW + HOUR)
    assert (refusal.code, refusal.until, refusal.is_first) == (USED_UP, NOW + DAY, True)
    assert "leaves 40 bytes" in refusal.message
    assert not _spend(ledger, [SHOP], "shop", 60, NOW + HOUR).is_first
    assert _spend(ledger, [SHOP], "shop", 40, NOW + HOUR) is None
    assert _spend(ledger, [SHOP], "shop", 60, NOW + DAY) is None
    assert not _spend(ledger, [SHOP], "shop", 60, NOW + DAY).is_first
    # A period later, a refusal is news again.
    assert _spend(ledger, [SHOP], "shop", 60, NOW + DAY + HOUR).is_first


def test_both_budgets_count():
    ledger = FleetLedger(FakeTexts())
    assert _spend(ledger, [ALL], "other", 100) is None
    assert _spend(ledger, [SHOP, ALL], "shop", 60).code == USED_UP
    assert _spend(ledger, [SHOP, ALL], "shop", 50) is None
    assert ledger.state().spent_of("shop", 0) == 50
    assert ledger.state().spent_of(None, 0) == 150


def test_a_group_larger_than_the_budget_never_fits():
    refusal = _spend(FleetLedger(FakeTexts()), [SHOP], "shop", 101)
    assert (refusal.code, refusal.until, refusal.is_first) == (TOO_LARGE, None, False)


def test_runs_at_the_same_time_and_those_that_are_not_renewed():
    ledger = FleetLedger(FakeTexts())
    pools = [Pool("shop", None, DAY, 1)]
    assert ledger.change(lambda state: state.begin(pools, _run(1), NOW)) is None
    refusal = ledger.change(lambda state: state.begin(pools, _run(2), NOW + 1))
    assert refusal.code == TOO_MANY_RUNS
    assert ledger.change(lambda state: state.begin([], _run(3, "other"), NOW)) is None
    ledger.change(lambda state: (state.renew(_run(1), NOW + RUN_MILLIS - 1), None))
    assert ledger.change(lambda state: state.begin(pools, _run(2), NOW + RUN_MILLIS)).code == TOO_MANY_RUNS
    # Its service was killed: a minute later, another run takes its place.
    assert ledger.change(lambda state: state.begin(pools, _run(2), NOW + 2 * RUN_MILLIS)) is None
    ledger.change(lambda state: (state.end("r2"), None))
    assert not ledger.state().runs


def test_a_run_that_was_not_renewed_in_time_counts_again_once_it_is():
    pools = [Pool("shop", None, DAY, 1)]
    state, _ = LedgerState().begin(pools, _run(1), NOW)
    late = NOW + RUN_MILLIS + 1
    state, refusal = state.begin(pools, _run(2, now=late), late)
    assert refusal is None
    state = state.renew(_run(1), late).end("r2")
    assert [run.run_id for run in state.runs] == ["r1"]
    assert state.begin(pools, _run(3, now=late), late)[1].code == TOO_MANY_RUNS


def test_a_process_whose_clock_is_days_ahead_blocks_no_other_one():
    pools, ahead = [Pool("shop", 100, DAY, 1)], NOW + 3 * DAY
    state, _ = LedgerState().begin(pools, _run(1, now=ahead), ahead)
    state, _ = state.spend(pools, "shop", 100, ahead)
    state, refusal = state.begin(pools, _run(2), NOW)
    assert (refusal, [run.run_id for run in state.runs]) == (None, ["r2"])
    state, refusal = state.spend(pools, "shop", 60, NOW)
    assert refusal is None
    assert state.spend(pools, "shop", 60, NOW)[1].until == NOW + DAY
    # Its bytes count for one period, as those of any other process do.
    assert state.spend(pools, "shop", 60, ahead)[1].until == ahead + DAY


def test_clocks_that_differ_by_minutes_share_a_budget():
    state, _ = LedgerState().spend([SHOP], "shop", 60, NOW + HOUR // 6)
    assert state.spend([SHOP], "shop", 60, NOW)[1].until == NOW + HOUR // 6 + DAY


class RacingTexts(FakeTexts):
    """Another process writes just before this one, some times."""

    def __init__(self, races, pools, size):
        super().__init__()
        self.races, self.pools, self.size, self.other_spent = races, pools, size, 0

    def create(self, name, text):
        if self.races > 0:
            self.races -= 1
            races, self.races = self.races, 0
            refused = FleetLedger(self).change(lambda state: state.spend(self.pools, "shop", self.size, NOW))
            self.other_spent += 0 if refused else self.size
            self.races = races
        return super().create(name, text)


@given(st.integers(0, 8), st.integers(1, 60), st.lists(st.integers(1, 60), max_size=6))
def test_two_processes_never_spend_the_same_bytes(races, size, sizes):
    texts = RacingTexts(races, [SHOP], size)
    ledger = FleetLedger(texts)
    spent = sum(size for size in sizes if _spend(ledger, [SHOP], "shop", size) is None)
    assert spent + texts.other_spent <= SHOP.max_bytes
    assert ledger.state().spent_of("shop", 0) == spent + texts.other_spent


def test_it_gives_up_where_others_are_always_faster():
    class Lost(FakeTexts):
        def create(self, name, text):
            return False

    with pytest.raises(ConcurrentChangeError):
        _spend(FleetLedger(Lost()), [SHOP], "shop", 1)


def test_a_process_that_slept_while_its_successors_were_deleted_writes_nothing():
    texts = FakeTexts()
    for _ in range(3):
        _spend(FleetLedger(texts), [ALL], "shop", 10)

    class Sleeping(FakeTexts):
        """Between its look and its write, others write 300 texts and delete the old ones."""

        def create(self, name, text):
            if name == f"{4:020}.json":
                self.texts = {f"{300:020}.json": LedgerState((Spending(NOW, "shop", 150),)).to_json()}
            return super().create(name, text)

    asleep = Sleeping()
    asleep.texts = texts.texts
    assert _spend(FleetLedger(asleep), [ALL], "shop", 10).code == USED_UP
    assert asleep.names() == [f"{300:020}.json", f"{301:020}.json"]


def test_old_texts_are_deleted():
    texts = FakeTexts()
    for _ in range(450):
        _spend(FleetLedger(texts), [ALL], "shop", 1, NOW + len(texts.texts) * DAY)
    assert 200 <= len(texts.texts) <= 221


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"spent":[[1,2,3]],"runs":[],"used_up":{}}',
        '{"spent":[],"runs":[1],"used_up":{}}',
        '{"spent":[],"runs":[],"used_up":{"a":"b"}}',
    ],
)
def test_a_damaged_text_is_passed_over(text):
    texts = FakeTexts()
    _spend(FleetLedger(texts), [SHOP], "shop", 90)
    texts.texts[f"{2:020}.json"] = text
    assert isinstance(LedgerState.parse(text), Unreadable)
    assert _spend(FleetLedger(texts), [SHOP], "shop", 20).code == USED_UP
    assert _spend(FleetLedger(texts), [SHOP], "shop", 10) is None
    assert texts.names()[-1] > f"{2:020}.json"


spendings = st.lists(
    st.builds(Spending, st.integers(NOW - 40 * DAY, NOW), st.sampled_from(["shop", "other", ""]), st.integers(1, 50)),
    max_size=30,
)


@given(spendings, st.sampled_from([HOUR, 5 * HOUR, DAY, 7 * DAY, 30 * DAY]))
def test_adding_up_old_entries_never_makes_them_count_for_less(spent, window):
    state = LedgerState()
    for entry in sorted(spent, key=lambda s: s.at):
        state, refusal = state.spend([], entry.database, entry.bytes, entry.at)
        assert refusal is None
    exact = sum(s.bytes for s in spent if s.at > NOW - window)
    counted = state.spent_of(None, NOW - window)
    # A sum has the newest of its times, so that it counts for a day longer at most.
    assert exact <= counted <= sum(s.bytes for s in spent if s.at > NOW - window - DAY)
    assert LedgerState.parse(state.to_json()) == state


@given(spendings, st.integers(1, 100))
def test_the_time_of_a_refusal_is_when_the_bytes_fit(spent, size):
    state = LedgerState(tuple(s for s in spent if s.at > NOW - KEPT_MILLIS))
    refusal = state.refusal([SHOP], size, NOW)
    if refusal is not None:
        assert state.refusal([SHOP], size, refusal.until) is None
        assert state.refusal([SHOP], size, refusal.until - 1) is not None


def test_names_of_other_digits_are_no_texts():
    """They would be the newest ones for ever, so that no change would be seen."""
    texts = FakeTexts()
    texts.texts["１" * 20 + ".json"] = LedgerState().to_json()
    ledger = FleetLedger(texts)
    assert _spend(ledger, [SHOP], "shop", 60) is None
    assert _spend(ledger, [SHOP], "shop", 60).code == USED_UP
