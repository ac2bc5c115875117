"""Weights, fractions and samples."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otree.weight import ALL, MAX_WEIGHT, MIN_WEIGHT, WeightRange, fraction_of, weight_of

FRACTION = st.floats(-0.5, 1.5, allow_nan=False)


@given(st.integers(MIN_WEIGHT, MAX_WEIGHT))
def test_round_trip(weight: int) -> None:
    """A fraction gives its weight back, up to the cut toward zero."""
    assert abs(weight_of(fraction_of(weight)) - weight) <= 1
    assert 0.0 <= fraction_of(weight) <= 1.0


def test_bounds() -> None:
    """The ends are exact and saturate; cutting is toward zero."""
    assert (weight_of(0.0), weight_of(1.0)) == (MIN_WEIGHT, MAX_WEIGHT)
    assert (weight_of(-3.0), weight_of(float("inf"))) == (MIN_WEIGHT, MAX_WEIGHT)
    assert (fraction_of(MIN_WEIGHT), fraction_of(MAX_WEIGHT)) == (0.0, 1.0)
    assert weight_of(0.5) == 0
    assert weight_of(0.1) == -1717986918
    with pytest.raises(ValueError, match="NaN"):
        weight_of(float("nan"))


# A sum of shares that should be 1 may end anywhere here.
ALMOST_ONE = st.floats(1.0 - 2.0**-34, 1.0 + 2.0**-34)


@given(FRACTION | ALMOST_ONE, FRACTION | ALMOST_ONE)
def test_sample_range(lower: float, upper: float) -> None:
    """A sample holds the weights from its lower to below its upper fraction."""
    sample = WeightRange.of_sample(lower, upper)
    first = weight_of(lower) if lower < 1.0 - 2.0**-33 else MAX_WEIGHT + 1
    last = weight_of(upper) - 1 if upper < 1.0 - 2.0**-33 else MAX_WEIGHT
    if sample is None:
        assert first > last
    else:
        assert (sample.first, sample.last) == (first, last)
        assert sample.overlaps(sample.last, MAX_WEIGHT)
        assert not sample.overlaps(MIN_WEIGHT, sample.first - 1)


def _bounds_of_split(weights: list[float]) -> list[float]:
    """The bounds of the parts as ``randomSplit`` computes them, with every rounding error."""
    total = 0.0
    for weight in weights:
        total += weight
    bounds = [0.0]
    for weight in weights:
        bounds.append(bounds[-1] + weight / total)
    return bounds


SHARES = st.floats(0.0, 1e6) | st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 1.0 / 3.0, 5e-324, 1e-12, 1e300])
SPLITS = st.lists(SHARES, min_size=1, max_size=40) | st.builds(
    lambda weight, count: [weight] * count, st.floats(1e-6, 1e6), st.integers(1, 3000)
)


@given(SPLITS.filter(lambda weights: 0.0 < sum(weights) < float("inf")))
@example([1.0] * 10)
@example([1.0] * 10 + [0.0])
@example([0.7, 0.1, 0.2])
def test_every_random_split_is_a_partition(weights: list[float]) -> None:
    """The parts of a split follow one another from the first to the last weight, whatever the rounding."""
    bounds = _bounds_of_split(weights)
    parts = [WeightRange.of_sample(*ends) for ends in pairwise(bounds)]
    expected = MIN_WEIGHT
    for part in parts:
        if part is not None:
            assert part.first == expected
            expected = part.last + 1
    assert expected == MAX_WEIGHT + 1


def test_a_split_into_tenths_ends_below_one() -> None:
    """Ten tenths add up to less than 1, and the last tenth still has the two largest weights."""
    bounds = _bounds_of_split([1.0] * 10)
    assert bounds[-1] == 0.9999999999999999
    last = WeightRange.of_sample(bounds[-2], bounds[-1])
    assert last is not None
    assert last.last == MAX_WEIGHT


@given(st.floats(0.0, 1.0))
def test_samples_partition_all_rows(border: float) -> None:
    """Two samples that meet at a border share no weight and miss none."""
    low, high = WeightRange.of_sample(0.0, border), WeightRange.of_sample(border, 1.0)
    parts = [part for part in (low, high) if part is not None]
    assert parts[0].first == MIN_WEIGHT
    assert parts[-1].last == MAX_WEIGHT
    if len(parts) == 2:
        assert parts[0].last + 1 == parts[1].first


def test_whole_and_empty_samples() -> None:
    """The whole sample has the last weight too; empty ones are None."""
    assert WeightRange.of_sample(0.0, 1.0) == ALL == WeightRange.ALL
    for bounds in ((0.0, 0.0), (1.0, 1.0), (0.3, 0.3), (0.6, 0.4), (1.0, 2.0), (-1.0, 0.0)):
        assert WeightRange.of_sample(*bounds) is None
