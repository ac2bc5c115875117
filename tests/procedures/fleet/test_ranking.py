"""The order of tables: by saving per byte and waiting, and nothing that is worthwhile starves."""

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from procedures.fleet.offer import LEAST_SAVING_PER_BYTE, Offer
from procedures.fleet.ranking import DOUBLING_MILLIS, MOST_DOUBLINGS, priority, ranked

savings = st.floats(0, 1e15)
bytes_ = st.integers(1, 10**15)
waits = st.integers(0, 2 * MOST_DOUBLINGS * DOUBLING_MILLIS)
worthwhile = st.builds(Offer, savings, bytes_, st.booleans()).filter(lambda offer: offer.is_worthwhile)


@given(savings, savings, bytes_, waits)
def test_a_larger_saving_never_comes_later(one, other, cost, waited):
    less, more = sorted((one, other))
    assert priority(Offer(less, cost, True), waited) <= priority(Offer(more, cost, True), waited)


@given(savings, bytes_, bytes_, waits)
def test_a_lower_cost_never_comes_later(saving, one, other, waited):
    less, more = sorted((one, other))
    assert priority(Offer(saving, less, True), waited) >= priority(Offer(saving, more, True), waited)


@given(st.builds(Offer, savings, bytes_, st.booleans(), st.booleans()), waits, waits)
def test_waiting_longer_never_comes_later(offer, one, other):
    less, more = sorted((one, other))
    assert priority(offer, less) <= priority(offer, more)
    assert priority(offer, -less) == priority(offer, 0)


@given(worthwhile, worthwhile)
def test_nothing_starves(one, other):
    poor, rich = sorted((one, other), key=lambda offer: offer.saving_per_byte)
    doublings = math.log2(rich.saving_per_byte / poor.saving_per_byte)
    assume(doublings < MOST_DOUBLINGS - 1)
    # One more millisecond than the documented time, and a bit for rounding.
    waited = math.ceil(doublings * DOUBLING_MILLIS * (1 + 1e-9)) + 60_000
    assert priority(poor, waited) > priority(rich, 0)


@given(st.floats(0, LEAST_SAVING_PER_BYTE, exclude_max=True), waits)
def test_what_is_not_worth_its_bytes_has_no_turn_however_long_it_waits(per_byte, waited):
    offer = Offer(per_byte * 1000, 1000, True)
    assume(not offer.is_worthwhile)
    assert priority(offer, waited) == 0
    assert ranked([offer], lambda table: (table, waited)) == []


@given(st.lists(st.tuples(st.builds(Offer, savings, bytes_, st.booleans(), st.booleans()), waits)))
def test_tables_are_ranked_by_priority_and_ties_keep_their_order(tables):
    order = ranked(list(enumerate(tables)), lambda table: table[1])
    assert [n for n, _ in order] == sorted(
        (n for n, (offer, _) in enumerate(tables) if offer.is_worthwhile), key=lambda n: (-priority(*tables[n]), n)
    )
