"""How rows lie over values, by the ranges of their files: against a count over drawn rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.curve import Ranks, RowsBeside, bits_per_dimension, hilbert_keys
from otree.value_spread import ValueSpread

RANGES = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(0, 30), st.integers(1, 40)).map(lambda f: (f[0], f[0] + f[1], f[2])),
    min_size=1,
    max_size=8,
)


def _spread(files: list[tuple[int, int, int]]) -> ValueSpread:
    low, high, rows = (np.array(column, float) for column in zip(*files, strict=True))
    spread = ValueSpread.of_files(low, high, rows)
    assert spread is not None
    return spread


def _counted(files: list[tuple[int, int, int]], at: float, including: bool) -> float:
    """Rows below a value, file by file."""
    count = 0.0
    for low, high, rows in files:
        if low == high:
            count += rows if at > low or (including and at == low) else 0
        else:
            count += rows * min(max((at - low) / (high - low), 0.0), 1.0)
    return count / sum(rows for _, _, rows in files)


@given(RANGES, st.lists(st.integers(-120, 160).map(lambda n: n / 2), min_size=1, max_size=10))
def test_shares_of_rows(files: list[tuple[int, int, int]], at: list[float]) -> None:
    """Rows are spread evenly over their file's range, and a file of one value has all of them there."""
    spread = _spread(files)
    assert spread.rows == pytest.approx(sum(rows for _, _, rows in files))
    np.testing.assert_allclose(spread.below(np.array(at)), [_counted(files, v, False) for v in at], atol=1e-9)
    np.testing.assert_allclose(spread.up_to(np.array(at)), [_counted(files, v, True) for v in at], atol=1e-9)


def test_unknown_ranges_count_for_nothing() -> None:
    """Files without statistics are left out; a table of nothing else has no spread."""
    nan = float("nan")
    known = _spread([(0, 10, 5)])
    mixed = ValueSpread.of_files(np.array([0.0, nan, 3.0]), np.array([10.0, 4.0, nan]), np.array([5.0, 9.0, 9.0]))
    assert mixed is not None
    assert mixed.rows == known.rows
    assert ValueSpread.of_files(np.array([nan]), np.array([1.0]), np.ones(1)) is None
    assert ValueSpread.of_files(np.zeros(1), np.ones(1), np.zeros(1)) is None


@given(RANGES, st.lists(st.integers(-60, 90), min_size=1, max_size=50), st.floats(0, 0.999), st.integers(1, 12))
def test_codes_beside_other_rows_follow_the_order(
    files: list[tuple[int, int, int]], values: list[int], share: float, bits: int
) -> None:
    """A larger value never has a smaller code, and codes stay in their bits."""
    ranks = Ranks.of_sample(np.array(values, float), bits, RowsBeside(share, _spread(files).below))
    codes = ranks.codes_of(np.sort(np.array([*values, -1e9, 1e9, 0.5]))).tolist()
    assert codes == sorted(codes)
    assert all(0 <= code < 1 << bits for code in codes)


def test_a_single_value() -> None:
    """No other value is between its ends."""
    spread = _spread([(5, 5, 3)])
    at = np.array([-1e308, 4.0, 5.0, 6.0, 1e308])
    assert spread.below(at).tolist() == [0, 0, 0, 1, 1]
    assert spread.up_to(at).tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("ends", [(0.0, 2.3e-308), (-1.7e308, 1.7e308), (1e300, 1.1e300)])
def test_the_ends_of_doubles(ends: tuple[float, float]) -> None:
    """Neither the shortest nor the longest range overflows."""
    spread = ValueSpread.of_files(np.array([ends[0], 0.0]), np.array([ends[1], 1.0]), np.array([4.0, 2.0]))
    assert spread is not None
    assert spread.up_to(np.array([1.79e308])).tolist() == [1]


def test_a_day_beside_two_years_is_cut_along_the_other_column() -> None:
    """Pages of a small batch are as narrow in the other column as those of the whole table, or nearly."""
    random = np.random.default_rng(3)
    rows, page = 2000, 100
    day, other = 730 + random.random(rows), random.random(rows)
    bits = bits_per_dimension(2)

    def width(beside: RowsBeside | None) -> float:
        codes = [Ranks.of_sample(day, bits, beside).codes_of(day), Ranks.of_sample(other, bits).codes_of(other)]
        pages = other[np.argsort(hilbert_keys(codes, bits), kind="stable")].reshape(-1, page)
        return float(np.mean(np.ptp(pages, axis=1)))

    years = _spread([(0, 730, 730 * rows)])
    assert width(RowsBeside(730 / 731, years.below)) < 0.1
    assert width(None) > 0.2


def test_nan_is_above_all_values() -> None:
    spread = _spread([(0, 10, 5)])
    assert spread.below(np.array([5.0, np.nan, np.inf])).tolist() == [0.5, 1.0, 1.0]
