"""The choice of index columns from recorded reads: when columns are proposed, when they are set, and what is stored."""

import pytest
from folders import memory_table
from hypothesis import given
from hypothesis import strategies as st

from procedures.insight.recommendation.column_choice import (
    PROPOSAL_MILLIS,
    STATE_FILE,
    ChoiceState,
    Chosen,
    Proposal,
    choice_state,
    decide,
    note_of,
)

HOUR, DAY = 3_600_000, 86_400_000
NOW, PERIOD = 1_700_000_000_000, 30 * DAY
COLUMNS = st.sampled_from([None, "a", "b", "A,b:hashing", "b,a"])
# How often columns are recommended in a row, hours between two measurements, and the share that reads would have.
LOOKS = st.lists(
    st.tuples(COLUMNS, st.integers(1, 3), st.sampled_from([1, 12, 24, 30]), st.sampled_from([0.1, 0.5, 0.9, 0.91])),
    max_size=20,
)


def _names(columns):
    return {entry.split(":")[0].lower() for entry in columns.split(",")}


@given(looks=LOOKS, period=st.sampled_from([HOUR, DAY, 3 * DAY]))
def test_columns_are_set_after_a_day_and_not_changed_within_a_period(looks, period):
    now, proposal, chosen, seen = NOW, None, None, []
    for columns, hours, share in [look[::2] + look[3:] for look in looks for _ in range(look[1])]:
        now += hours * HOUR
        recommended = None if columns is None else Proposal(columns, now, 20, 1.0, share)
        proposal = decide(proposal, recommended, chosen, period)
        seen.append((now, columns))
        if proposal is None or not proposal.is_due(now):
            continue
        assert columns is not None
        if chosen is not None:
            assert now - chosen.since >= period
            assert _names(columns) != _names(chosen.columns)
            assert share <= 0.9
        # For a day, nothing else was recommended.
        since = max(time for time, _ in seen if time <= now - PROPOSAL_MILLIS)
        assert all(found and _names(found) == _names(columns) for time, found in seen if time >= since)
        proposal, chosen = None, Chosen(columns, now)


def _recommended(columns="a", after=0, before=1.0, share=0.1):
    return Proposal(columns, NOW + after, 20, before, share)


def test_what_is_recommended_is_proposed_and_set():
    proposal = decide(None, _recommended(), None, PERIOD)
    assert proposal == _recommended()
    assert decide(proposal, _recommended(after=DAY), None, PERIOD) is proposal
    assert [proposal.is_due(NOW + after) for after in (0, DAY - 1, DAY)] == [False, False, True]
    assert decide(proposal, _recommended("a,b", DAY), None, PERIOD) == _recommended("a,b", DAY)
    assert decide(proposal, None, None, PERIOD) is None
    # A clock that was wrong: the day begins again.
    assert decide(proposal, _recommended(after=-1), None, PERIOD).since == NOW - 1


@pytest.mark.parametrize(
    ("recommended", "is_proposed"),
    [
        (_recommended("b", PERIOD - 1), False),
        (_recommended("b", PERIOD), True),
        (_recommended("b", PERIOD, 0.5, 0.45), True),
        (_recommended("b", PERIOD, 0.5, 0.46), False),
        (_recommended("A:quantiles", PERIOD), False),
        (None, False),
        (_recommended("b", -DAY), False),
    ],
)
def test_a_choice_stays_for_a_period_and_until_others_are_better(recommended, is_proposed):
    assert (decide(None, recommended, Chosen("a", NOW), PERIOD) is not None) == is_proposed


@pytest.mark.parametrize(
    "state",
    [
        ChoiceState(),
        ChoiceState(3, NOW),
        ChoiceState(120, NOW, Proposal("a,`b,c`:hashing", NOW, 120, 0.35, 0.041), Chosen("x", 1)),
    ],
)
def test_what_is_stored_is_read(state):
    table = memory_table({})
    state.put(table)
    assert choice_state(table) == state


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"reads": -1}', '{"reads": 1, "proposal": "a", "proposed_at": 1, "share_before": 2}'],
)
def test_a_damaged_file_is_no_choice(text):
    assert choice_state(memory_table({STATE_FILE: text})) == ChoiceState()


def test_notes():
    def note(state=None, clustering=(), **own):
        settings = {f"use.{key.replace('__', '.')}": text for key, text in own.items()}
        return note_of({"use.insights.consumption.enabled": "true", **settings}, state or ChoiceState(), clustering)

    assert note(insights__consumption__enabled="false").endswith("set use.insights.consumption.enabled to true")
    assert note(clustering=["x", "y"]).endswith("clusters by x, y")
    assert note(ChoiceState(3)) == (
        "the service proposes index columns after 20 recorded reads with filters over at least a day; "
        "there are 3 so far"
    )
    assert note(ChoiceState(1_234, NOW)) == "no index columns pay for the 1,234 recorded reads"
    assert note(ChoiceState(20, NOW, Proposal("a,b", NOW, 120, 0.35, 0.041))) == (
        "the service proposes the index columns a,b from 120 recorded reads, which would read about 4.1 % of the bytes "
        "in place of 35.0 %; the service sets them after 2023-11-15T22:13:20+00:00"
    )
    assert note(index__columns="a") == "the service has chosen the index columns a from recorded reads"
