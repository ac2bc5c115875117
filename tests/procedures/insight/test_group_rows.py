"""The groups of an answer, without Spark."""

from procedures.insight.approximation.aggregate_query import NoInterval, Output
from procedures.insight.approximation.answer_rows import Reading, estimated_rows, exact_rows
from procedures.insight.approximation.estimation import Estimation
from procedures.insight.approximation.exact_query import ExactValue
from procedures.insight.approximation.group_rows import _groups


def test_groups_are_not_identified_by_their_keys():
    keys = [{"k": "a"}, {"k": "a"}, {"k": None}]
    values = [ExactValue(each, name, number, None) for number, each in enumerate(keys) for name in ("n", "m")]
    rows = exact_rows(values, "the table is small", Reading(1.0, 0, 0, 0))
    groups = _groups(rows, ["k"])
    assert [(group["n"].keys, group["n"].estimate, group["m"].estimate) for group in groups] == [
        (each, number, number) for number, each in enumerate(keys)
    ]


def test_an_aggregate_without_an_interval_is_in_no_group_of_several():
    values = [ExactValue({}, "n", number, None) for number in (1.0, 2.0)]
    estimation = Estimation([Output("m", NoInterval("a sample gives no interval"))], [], None, 0)
    reading = Reading(0.1, 5, 0, 0)
    rows = exact_rows(values, "of the test", reading)
    without = estimated_rows(estimation, [], [], reading, 0.95, is_grouped=True)
    assert [list(group) for group in _groups(rows + without, [])] == [["n"], ["n"]]
    assert [list(group) for group in _groups(rows[:1] + without, [])] == [["n", "m"]]
