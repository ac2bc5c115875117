"""Weights, fractions and samples."""

import pytest
from hypothesis import given
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


@given(FRACTION, FRACTION)
def test_sample_range(lower: float, upper: float) -> None:
    """A sample holds the weights from its lower to below its upper fraction."""
    sample = WeightRange.of_sample(lower, upper)
    if sample is None:
        assert lower >= upper or lower >= 1.0 or weight_of(lower) == weight_of(upper) or upper <= 0.0
    else:
        assert sample.first == weight_of(max(lower, 0.0))
        assert sample.last == (MAX_WEIGHT if upper >= 1.0 else weight_of(upper) - 1)
        assert sample.overlaps(sample.last, MAX_WEIGHT)
        assert not sample.overlaps(MIN_WEIGHT, sample.first - 1)


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
