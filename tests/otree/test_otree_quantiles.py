"""Quantiles: coordinates against their definition, intervals, JSON, and when a revision gets new ones."""

import json
import math
from bisect import bisect_right
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.errors import IndexFormatError
from otree.revision import next_revision
from otree.transformation import (
    ColumnStats,
    DeclaredStats,
    EmptyTransformation,
    IdentityTransformation,
    NumericQuantilesTransformation,
    StringQuantilesTransformation,
    transformation_from_json,
)
from otree.transformer import Transformer, make_transformation, needs_quantiles, suits

DOUBLE, LONG, TIMESTAMP = "DoubleDataType", "LongDataType", "TimestampDataType"
FINITE = st.floats(-1e300, 1e300)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
NUMBERS = Transformer("quantiles", "n", DOUBLE)
WORDS = Transformer("quantiles", "w", "StringDataType")


def _defined(quantiles: list[float], value: float) -> float:
    """The format's words as plainly as can be, for quantiles without repetitions."""
    steps = len(quantiles) - 1
    if value in quantiles:
        return quantiles.index(value) / steps
    if value < quantiles[0]:
        return 0.0
    if value > quantiles[-1]:
        return 1.0
    i = bisect_right(quantiles, value) - 1
    return (i + (value - quantiles[i]) / (quantiles[i + 1] - quantiles[i])) / steps


@given(st.lists(FINITE, min_size=2, unique=True).map(sorted), FINITE)
def test_numeric_coordinates_are_as_defined(quantiles: list[float], value: float) -> None:
    space = NumericQuantilesTransformation(tuple(quantiles), DOUBLE)
    assert space.coordinate(value) == _defined(quantiles, value)
    for i, quantile in enumerate(quantiles):
        assert space.coordinate(quantile) == i / (len(quantiles) - 1)
    assert transformation_from_json(json.loads(json.dumps(space.to_json()))) == space


ANY = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.decimals(allow_nan=False)


@given(st.lists(FINITE, min_size=2).map(sorted), st.sampled_from([DOUBLE, LONG, TIMESTAMP]), st.tuples(ANY, ANY, ANY))
def test_numeric_intervals_hold(quantiles: list[float], data_type: str, values: tuple[int | float | Decimal]) -> None:
    """Repeated quantiles, as other writers may have them, included."""
    space = NumericQuantilesTransformation(tuple(quantiles), data_type)
    low, middle, high = sorted(values)
    assert 0.0 <= space.coordinate(low) <= space.coordinate(middle) <= space.coordinate(high) <= 1.0
    for lower in (None, low):
        for upper in (None, high):
            start, end = space.interval(lower, upper)
            assert start <= space.coordinate(middle) <= end


def test_repeated_quantiles_may_be_hit_anywhere() -> None:
    """Which of equal quantiles a writer's search meets is its own affair."""
    space = NumericQuantilesTransformation((0.0, 5.0, 5.0, 5.0, 9.0), DOUBLE)
    assert space.interval(5.0, 5.0) == (0.25, 0.75)
    words = StringQuantilesTransformation(("a", "b", "b", "c", "d"))
    assert words.interval("b", "b") == (0.25, 0.5)


def test_values_beyond_the_ends() -> None:
    space = NumericQuantilesTransformation((-1.0, 0.0, 10.0), DOUBLE)
    assert [space.coordinate(v) for v in (None, -math.inf, -2, -1, 5, 10, 11, math.inf, math.nan)] == [
        0.0, 0.0, 0.0, 0.0, 0.75, 1.0, 1.0, 1.0, 1.0,
    ]  # fmt: skip
    assert space.interval(11, None) == space.interval(math.nan, None) == (1.0, 1.0)
    assert space.interval(None, -5) == (0.0, 0.0)
    assert space.null_interval == (0.0, 0.0)
    low, high = space.interval(5, 5)
    assert low < 0.75 < high < 0.75 + 1e-14  # another writer may round otherwise
    times = NumericQuantilesTransformation((0, 10), TIMESTAMP)
    assert times.coordinate(4.9) == times.coordinate(4)
    with pytest.raises(TypeError):
        space.coordinate("1")


@given(st.lists(TEXTS, min_size=2, unique=True), st.tuples(TEXTS, TEXTS, TEXTS))
def test_string_coordinates_and_intervals(quantiles: list[str], values: tuple[str, str, str]) -> None:
    quantiles.sort()
    space = StringQuantilesTransformation(tuple(quantiles))
    low, middle, high = sorted(values)
    for value in values:
        below = max(bisect_right(quantiles, value) - 1, 0)
        assert space.coordinate(value) == below / (len(quantiles) - 1) == space.coordinate(value.encode())
    for lower in (None, low):
        for upper in (None, high):
            start, end = space.interval(lower, upper)
            assert start <= space.coordinate(middle) <= end
    assert transformation_from_json(json.loads(json.dumps(space.to_json()))) == space


@given(st.lists(TEXTS, min_size=2, unique=True), TEXTS, TEXTS)
def test_string_ranges_hold_in_the_order_of_other_writers(quantiles: list[str], one: str, other: str) -> None:
    """Java orders strings by UTF-16 units: files written by that order are not missed, either."""
    units = sorted(quantiles, key=lambda q: q.encode("utf-16-be"))
    space = StringQuantilesTransformation(tuple(units))
    place = max(bisect_right([q.encode("utf-16-be") for q in units], one.encode("utf-16-be")) - 1, 0)
    for start, end in (space.interval(one, one), space.interval(min(one, other), max(one, other))):
        assert start <= place / (len(units) - 1) <= end


def test_string_specials() -> None:
    space = StringQuantilesTransformation(("s1", "s3", "s5", "s999"))
    assert [space.coordinate(v) for v in (None, "", "s1", "s2", "s4", "s999", "t")] == [0, 0, 0, 0, 1 / 3, 1, 1]
    assert space.interval("s2", "s4") == (0.0, 1 / 3)
    assert StringQuantilesTransformation(("a", "\ue000")).interval("b", "b") == (0.0, 1.0)
    with pytest.raises(TypeError):
        space.coordinate(1)


@pytest.mark.parametrize("quantiles", [[], [1.0], [2.0, 1.0], [1.0, 1e308], "x", ["a", 1], [True, False]], ids=str)
@pytest.mark.parametrize("kind", ["Numeric", "String"])
def test_wrong_quantiles_are_refused(quantiles: object, kind: str) -> None:
    name = f"io.qbeast.core.transform.CDF{kind}QuantilesTransformation"
    with pytest.raises(IndexFormatError, match="quantiles"):
        transformation_from_json({"className": name, "quantiles": quantiles, "dataType": DOUBLE})


def test_estimates() -> None:
    """Repetitions fall together; long strings, and characters without one order, are cut."""
    numeric = NumericQuantilesTransformation.of_estimate([0, 0, 0, 7, 9, 9], LONG)
    assert numeric == NumericQuantilesTransformation((0.0, 7.0, 9.0), LONG)
    assert NumericQuantilesTransformation.of_estimate([3, 3], LONG) is None
    strings = StringQuantilesTransformation.of_estimate(["a" * 100, "b😀c", "b\uffff", "c"])
    assert strings == StringQuantilesTransformation(("a" * 64, "b", "c"))


def test_quantiles_stay_until_the_owner_declares_others() -> None:
    """Data beyond the ends needs no new revision; too few values give a space that is replaced later."""
    first = next_revision(None, (NUMBERS, WORDS), (ColumnStats(5, 5, (5, 5)), ColumnStats(None, None, ())), 9, 1, "/t")
    assert first.transformations == (IdentityTransformation(5, DOUBLE), EmptyTransformation())
    assert needs_quantiles(NUMBERS, first.transformations[0])
    assert needs_quantiles(WORDS, first.transformations[1])
    same = (ColumnStats(5, 5, (5,)), ColumnStats(None, None, ("x", "x")))
    assert next_revision(first, (NUMBERS, WORDS), same, 9, 2, "/t") is first
    nulls = (ColumnStats(None, None, ()), ColumnStats(None, None, ()))
    assert next_revision(first, (NUMBERS, WORDS), nulls, 9, 2, "/t") is first
    another = next_revision(first, (NUMBERS, WORDS), (ColumnStats(6, 6, (6,)), nulls[1]), 9, 2, "/t")
    assert another.transformations[0] == NumericQuantilesTransformation((5, 6), DOUBLE)
    seen = (ColumnStats(1, 3, (1, 2, 3)), ColumnStats(None, None, ("a", "b")))
    second = next_revision(first, (NUMBERS, WORDS), seen, 9, 2, "/t")
    assert second.revision_id == 2
    assert second.transformations == (
        NumericQuantilesTransformation((1, 2, 3), DOUBLE),
        StringQuantilesTransformation(("a", "b")),
    )
    assert not needs_quantiles(NUMBERS, second.transformations[0])
    far = (ColumnStats(-100, 100), ColumnStats(None, None))
    assert next_revision(second, (NUMBERS, WORDS), far, 9, 3, "/t") is second
    declared = (ColumnStats(0, 9, declared=DeclaredStats(quantiles=(0.0, 4.0, 8.0))), ColumnStats(None, None))
    third = next_revision(second, (NUMBERS, WORDS), declared, 9, 3, "/t")
    assert third.transformations == (
        NumericQuantilesTransformation((0, 4, 8), DOUBLE), second.transformations[1],
    )  # fmt: skip
    assert next_revision(third, (NUMBERS, WORDS), declared, 9, 3, "/t") is third


def test_an_estimate_that_missed_a_rare_value_takes_the_ends() -> None:
    found = make_transformation(NUMBERS, ColumnStats(0, 10, (0, 0, 0)))
    assert found == NumericQuantilesTransformation((0, 10), DOUBLE)
    assert suits(NUMBERS, found, ColumnStats(0, 10, (0, 0, 0)))


def test_declared_ranges_widen_and_never_narrow() -> None:
    linear = Transformer("linear", "n", LONG)
    declared = DeclaredStats(0, 1000)
    first = make_transformation(linear, ColumnStats(10, 20, declared=declared))
    assert (first.to_json()["minNumber"], first.to_json()["maxNumber"]) == (0, 1000)
    wider = make_transformation(linear, ColumnStats(-5, 20, declared=declared))
    assert (wider.to_json()["minNumber"], wider.to_json()["maxNumber"]) == (-5, 1000)
    # A declared range is final: what lies inside asks for no head-room.
    later = make_transformation(linear, ColumnStats(10, 900, declared=declared), make_transformation(
        linear, ColumnStats(10, 20)
    ))  # fmt: skip
    assert (later.to_json()["minNumber"], later.to_json()["maxNumber"]) == (0, 1000)
    flag = Transformer("linear", "f", "IntegerDataType")
    both = make_transformation(flag, ColumnStats(None, None, declared=DeclaredStats(0, 1)))
    assert (both.coordinate(0), both.coordinate(1)) == (0.0, 1.0)
