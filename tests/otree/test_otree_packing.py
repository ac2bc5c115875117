"""Packing rows into files."""

import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otree.packing import Packing, pack, weight_bands
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of

COMMON_SAMPLES = (0.01, 0.1)


def _rows(size: int, places: int = 2**20, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(seed)
    weights = source.integers(MIN_WEIGHT, MAX_WEIGHT, size, dtype=np.int32, endpoint=True)
    return weights, source.integers(0, places, size, dtype=np.int64)


def _sizes(packing: Packing, weights: np.ndarray, keys: np.ndarray) -> Counter:
    rows = zip(weights.tolist(), keys.tolist(), range(len(keys)), strict=True)
    return Counter(packing.file_of(weight, key, number) for weight, key, number in rows)


@pytest.mark.parametrize("places", [2**20, 500, 3])
def test_files_are_balanced(places: int) -> None:
    """Files are near the target, also where many rows or nearly all share a place on the curve."""
    weights, keys = _rows(30_000, places)
    packing = pack(weights, keys, 30_000, 2_000)
    sizes = _sizes(packing, weights, keys)
    assert set(sizes) == set(range(packing.files))
    assert 13 <= packing.files <= 20
    assert max(sizes.values()) < 1.6 * 2_000
    lowest = packing.bands[1].runs[0].first_file
    assert min(rows for file, rows in sizes.items() if file >= lowest) > 0.4 * 2_000
    assert min(sizes.values()) > 0.1 * 2_000


@pytest.mark.parametrize("places", [2**20, 3, 4])
def test_a_place_of_a_lower_band_is_no_larger_than_a_file(places: int) -> None:
    """Lower bands have larger files than the last one, never much above one and a half targets."""
    weights, keys = _rows(40_000, places)
    packing = pack(weights, keys, 40_000, 40_000 // 38)
    sizes = _sizes(packing, weights, keys)
    assert max(sizes.values()) < 1.7 * 40_000 // 38
    assert set(sizes) == set(range(packing.files))
    # Where places can be cut, no place is spread over several files.
    assert packing.spreads == (places < 100)


def test_most_rows_in_one_place() -> None:
    """A place with most of the rows gets as many files as it needs, and its neighbours theirs."""
    weights, keys = _rows(30_000)
    keys[:27_000] = 777
    packing = pack(weights, keys, 30_000, 2_000)
    sizes = _sizes(packing, weights, keys)
    assert packing.spreads
    assert max(sizes.values()) < 1.6 * 2_000
    assert sum(sizes.values()) == 30_000


def test_common_samples_read_their_own_files_only() -> None:
    """A sample of a power of ten reads no row beyond it, but for a tenth of a file."""
    weights, keys = _rows(50_000)
    packing = pack(weights, keys, 50_000, 1_000)
    sizes = _sizes(packing, weights, keys)
    lowest: dict[int, int] = {}
    for weight, key in zip(weights.tolist(), keys.tolist(), strict=True):
        file = packing.file_of(weight, key)
        lowest[file] = min(weight, lowest.get(file, MAX_WEIGHT))
    for fraction in COMMON_SAMPLES:
        last = weight_of(fraction) - 1
        read = sum(rows for file, rows in sizes.items() if lowest[file] <= last)
        assert read <= max(int((weights <= last).sum()), 100), fraction


@settings(max_examples=50)
@given(st.integers(1, 400), st.integers(1, 10**9), st.floats(0.001, 0.999))
def test_no_sample_reads_more_than_ten_times_its_rows_and_a_file(files: int, seed: int, fraction: float) -> None:
    """Whatever the fraction and the number of files."""
    weights, keys = _rows(20_000, seed=seed)
    target = max(1, 20_000 // files)
    packing = pack(weights, keys, 20_000, target)
    read, asked = _read_by_sample([band.first_weight for band in packing.bands], weights, fraction)
    assert read <= 10.5 * asked + 1.5 * target + 50


@settings(max_examples=30)
@given(st.integers(600, 20_000), st.integers(1, 10**9), st.floats(0.01, 0.999))
def test_a_sample_of_a_large_table_reads_at_most_two_and_a_half_times_its_rows(
    files: int, seed: int, fraction: float
) -> None:
    """Where bands have many files, they are finer."""
    weights, _ = _rows(20_000, seed=seed)
    rows = files * 1_000
    bands = weight_bands(np.sort(weights), rows, 1_000)
    steps = 2.5 if fraction > 0.1 or files > 5_500 else 10
    read, asked = _read_by_sample([first for first, _ in bands], weights, fraction)
    assert read <= 1.1 * steps * asked + 20_000 / files + 50


def _read_by_sample(firsts: list[int], weights: np.ndarray, fraction: float) -> tuple[int, int]:
    last = weight_of(fraction) - 1
    reached = max(i for i, first in enumerate([MIN_WEIGHT, *firsts[1:]]) if first <= last)
    end = firsts[reached + 1] if reached + 1 < len(firsts) else MAX_WEIGHT + 1
    return int((weights < end).sum()), int((weights <= last).sum())


@settings(max_examples=100)
@given(
    st.lists(st.integers(MIN_WEIGHT, MAX_WEIGHT), min_size=1, max_size=300),
    st.integers(1, 100),
    st.integers(1, 10**6),
    st.integers(0, 10**9),
)
def test_bands_hold_every_weight_once(weights: list[int], copies: int, target: int, beside: int) -> None:
    """Bands follow each other from the smallest weight to the largest, none much smaller than a tenth of a file."""
    rows = len(weights) * copies
    bands = weight_bands(np.sort(np.array(weights, np.int32)), rows, target, beside)
    assert bands[0][0] == MIN_WEIGHT
    assert bands[-1][1] == MAX_WEIGHT + 1
    assert [end for _, end in bands[:-1]] == [first for first, _ in bands[1:]]
    share = target * max(rows / (rows + beside), 1 / 8)
    for first, end in bands:
        inside = sum(copies for weight in weights if first <= weight < end)
        assert len(bands) == 1 or inside >= 0.099 * share


@pytest.mark.parametrize(
    ("files", "fractions"),
    [
        (1.4, ()),
        (2, (0.1,)),
        (9, (0.1,)),
        (28, (0.01, 0.1)),
        (300, (0.001, 0.01, 0.1)),
        (2_000, (0.0001, 0.001, 0.01, 0.1, 0.2, 0.5)),
        (20_000, (0.00001, 0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
    ],
)
def test_bands_of_tables_of_all_sizes(files: float, fractions: tuple[float, ...]) -> None:
    """Powers of ten down to a tenth of a file; finer steps where many files lie below one."""
    weights = np.linspace(MIN_WEIGHT, MAX_WEIGHT, 1_000_001).astype(np.int32)
    bands = weight_bands(weights, int(files * 1_000), 1_000)
    assert [first for first, _ in bands[1:]] == [weight_of(fraction) for fraction in fractions]


@pytest.mark.parametrize("files", [2, 5, 28, 140])
def test_rows_that_join_a_table_have_bands_of_the_whole(files: int) -> None:
    """An addition of one file or more ends its bands where the table would."""
    weights = np.linspace(MIN_WEIGHT, MAX_WEIGHT, 100_001).astype(np.int32)
    whole = weight_bands(weights, files * 1_000, 1_000)
    part = weight_bands(weights, files * 200, 1_000, files * 800)
    assert part == whole


def test_a_sample_of_the_rows_is_enough() -> None:
    """Files of all rows stay near the target when the packing was made from a part of them."""
    weights, keys = _rows(60_000)
    packing = pack(weights[:6_000], keys[:6_000], 60_000, 3_000)
    sizes = _sizes(packing, weights, keys)
    assert max(sizes.values()) < 2 * 3_000


def test_few_rows_are_one_file() -> None:
    """Up to one and a half targets, and with nothing to go by."""
    weights, keys = _rows(1_400)
    assert pack(weights, keys, 1_400, 1_000).files == 1
    assert pack(weights[:0], keys[:0], 10**9, 1_000).files == 1


@given(st.integers(MIN_WEIGHT, MAX_WEIGHT), st.integers(0, 2**60 - 1), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=200)
def test_every_row_has_a_file(weight: int, key: int, spread: int) -> None:
    """Rows outside what the sample held too."""
    weights, keys = _rows(5_000, 50)
    packing = pack(weights, keys + 7, 50_000, 1_000)
    assert 0 <= packing.file_of(weight, key, spread) < packing.files


def test_the_same_rows_in_another_order() -> None:
    """The packing depends on the set of rows only."""
    weights, keys = _rows(10_000, 200)
    order = np.random.default_rng(1).permutation(10_000)
    assert pack(weights, keys, 10_000, 700) == pack(weights[order], keys[order], 10_000, 700)


def test_packed_form() -> None:
    """Bands and runs, then first weights, first runs, first keys, first files and widths, big-endian."""
    weights, keys = _rows(5_000, 50)
    packing = pack(weights, keys, 5_000, 1_000)
    runs = [run for band in packing.bands for run in band.runs]
    bands, size = struct.unpack_from(">ii", packing.packed())
    assert (bands, size) == (len(packing.bands), len(runs))
    assert len(packing.packed()) == 8 + 8 * bands + 16 * size


@pytest.mark.parametrize(("target", "keys"), [(0, 3), (10, 2)])
def test_nonsense_is_refused(target: int, keys: int) -> None:
    """A target of no rows, and weights without keys."""
    with pytest.raises(ValueError, match="Cannot pack 3 weights"):
        pack(np.zeros(3, np.int32), np.zeros(keys, np.int64), 100, target)


def test_rows_that_join_a_table_get_its_bands():
    """A sample reads as small a share of an addition as of the table, and not a whole file of each."""
    random = np.random.default_rng(5)

    def read_by(fraction, rows, beside):
        weights = random.integers(-(2**31), 2**31, rows).astype(np.int32)
        packing = pack(np.sort(weights), np.arange(rows), rows, 10_000, beside)
        last = weight_of(fraction)
        ends = [*[band.first_weight for band in packing.bands[1:]], 2**31]
        return sum(int(np.sum((weights >= b.first_weight) & (weights < end)))
                   for b, end in zip(packing.bands, ends, strict=True) if b.first_weight < last) / rows  # fmt: skip

    table, alone, joining = read_by(0.01, 280_000, 0), read_by(0.01, 22_000, 0), read_by(0.01, 22_000, 280_000)
    assert table < 0.012
    assert alone > 0.09
    assert joining < 0.012


def test_few_rows_that_join_a_table_are_one_file():
    weights = np.sort(np.random.default_rng(5).integers(-(2**31), 2**31, 1_800).astype(np.int32))
    assert pack(weights, np.arange(1_800), 1_800, 10_000, 10**9).files == 1
    # A table of their own size asks for no finer bands than two halves of it have.
    assert pack(weights, np.arange(1_800), 1_800, 10_000, 1_800).files == 1


def test_rows_of_low_weights_get_the_bands_of_their_table() -> None:
    """All rows below a tenth of the weights, merged alone, end where those of the whole table do."""
    rows, target = 140_000, 10_000
    weights = np.sort(np.random.default_rng(3).integers(MIN_WEIGHT, MAX_WEIGHT, rows, dtype=np.int64)).astype(np.int32)
    whole = weight_bands(weights, rows, target)
    low = weights[weights < weight_of(0.1)]
    merged = weight_bands(low, len(low), target, rows - len(low), 0.1)
    ends = [end for _, end in whole if end <= weight_of(0.1)]
    assert len(ends) == 2
    assert [end for _, end in merged[:-1]] == ends[:-1]
