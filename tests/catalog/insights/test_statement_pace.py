"""The pauses between the statements of a plain writer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.insights.statement_pace import Span, longest_pause, next_pause


def spans(*pairs):
    return [Span(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("info", "span"),
    [
        ({"timestamp": 1_000, "operationMetrics": {"executionTimeMs": "300"}}, Span(700, 1_000)),
        ({"timestamp": 1_000, "operationMetrics": {"execution_time_ms": 300}}, Span(700, 1_000)),
        ({"timestamp": 1_000, "operationMetrics": {}}, None),
        ({"timestamp": 1_000}, None),
        ({"operationMetrics": {"executionTimeMs": "300"}}, None),
        ({"timestamp": 1_000, "operationMetrics": {"executionTimeMs": "soon"}}, None),
        ({}, None),
    ],
)
def test_a_commit_tells_when_its_statement_began(info, span):
    assert Span.of(info) == span


def test_the_next_pause_is_the_shortest_of_the_last_ones():
    assert next_pause(spans((0, 10), (310, 320), (520, 530))) == 200


def test_old_pauses_do_not_count():
    quick = [(1_000 * n, 1_000 * n + 400) for n in range(7)]
    assert next_pause(spans((-50, -1), *quick)) == 600
    assert next_pause(spans((-50, -1), *quick[:5])) == -350


def test_a_slow_statement_of_a_writer_with_a_fixed_rate_takes_the_pause():
    assert next_pause(spans((0, 400), (1_000, 1_400), (2_000, 2_900))) == 100
    assert next_pause(spans((0, 400), (1_000, 1_400), (2_000, 3_100))) == -100


def test_writers_that_overlap_leave_no_pause():
    assert next_pause(spans((0, 400), (100, 500), (1_000, 1_400))) == -300
    assert longest_pause(spans((0, 400), (300, 500), (450, 900))) == -50


def test_nobody_knows_the_pause_after_a_single_statement_or_beside_a_silent_one():
    for pause in (next_pause, longest_pause):
        assert pause([]) is pause(spans((0, 400))) is pause([Span(0, 1), None, Span(2, 3)]) is None


def test_the_longest_pause_is_one_of_the_last_ones():
    assert longest_pause(spans((0, 10), (310, 320), (520, 530))) == 300
    assert longest_pause(spans((-900, -899), *((n, n + 1) for n in range(0, 40, 2)))) == 899
    assert longest_pause(spans((-900, -899), *((n, n + 1) for n in range(0, 42, 2)))) == 1


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), min_size=2, max_size=30))
def test_the_next_pause_is_no_longer_than_the_longest(pairs):
    end, found = 0, []
    for pause, duration in pairs:
        found.append(Span(end + pause, end + pause + duration))
        end = found[-1].ended
    assert next_pause(found) <= longest_pause(found)
