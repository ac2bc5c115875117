"""The curve along which rows are cut into files."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otree.curve import Ranks, bits_per_dimension, hilbert_keys, interleaved


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 6), (2, 4), (3, 3), (4, 2), (6, 1)])
def test_the_curve_visits_every_point_by_single_steps(dimensions: int, bits: int) -> None:
    """What makes a Hilbert curve: each key once, and neighbours in order are neighbours in space."""
    points = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)), np.int32)
    keys = hilbert_keys([points[:, i] for i in range(dimensions)], bits)
    assert sorted(keys.tolist()) == list(range(1 << bits * dimensions))
    steps = np.abs(np.diff(points[np.argsort(keys)], axis=0)).sum(axis=1)
    assert set(steps.tolist()) == {1}


def test_z_order() -> None:
    """Bits in turn, the first dimension before the second."""
    assert interleaved([np.array([0b10]), np.array([0b01])], 2).tolist() == [0b1001]


def test_keys_fit_a_long() -> None:
    """For as many columns as an index may have."""
    assert all(1 <= bits_per_dimension(d) <= 16 and bits_per_dimension(d) * d <= 60 for d in range(1, 17))


@settings(max_examples=100)
@given(st.lists(st.floats(allow_nan=False), max_size=60), st.integers(1, 12))
def test_codes_follow_the_order(values: list[float], bits: int) -> None:
    """A larger value never has a smaller code, and codes stay in their bits."""
    ranks = Ranks.of_sample(np.array(values, float), bits)
    probes = np.sort(np.array([*values, 0.0, 1e300, -1e300, np.inf, -np.inf]))
    codes = ranks.codes_of(probes).tolist()
    assert codes == sorted(codes)
    assert all(0 <= code < 1 << bits for code in codes)


def test_codes_of_bytes_follow_unsigned_order() -> None:
    """As UTF-8 does."""
    values = np.array([b"", b"a", b"\xc3\xa4", b"ab"], object)
    codes = Ranks.of_sample(values, 4).codes_of(np.array([b"", b"a", b"ab", b"\xc3\xa4"], object)).tolist()
    assert codes == sorted(codes)
    assert len(set(codes)) == 4


@pytest.mark.parametrize("distinct", [2, 10, 1000])
def test_codes_are_spread_over_the_rows(distinct: int) -> None:
    """Few values and many use the whole range of codes, and a frequent value takes its share of it."""
    values = np.repeat(np.arange(distinct, dtype=float), 5000 // distinct)
    codes = Ranks.of_sample(values, 10).codes_of(values)
    assert codes.min() < 1024 / min(distinct, 50)
    assert codes.max() > 1023 - 1024 / min(distinct, 50)
    assert abs(float(codes.mean()) - 512) < 40


def test_no_values() -> None:
    """A column of nulls has one code."""
    assert Ranks.of_sample(np.zeros(0), 8).codes_of(np.array([1.0, -1.0])).tolist() == [0, 0]
