"""Size tiers: which files are merged, and how often a row is rewritten over a history."""

import numpy as np
import pytest
from file_lists import file_table
from hypothesis import given
from hypothesis import strategies as st

from procedures.selection.size_tiers import TierPolicy, merges

POLICY = TierPolicy(min_files=4, min_bytes=None, tier_ratio=4, isolate_bytes=10_000)


def _files(*sizes, times=None, tiers=None):
    times = list(range(len(sizes))) if times is None else times
    tiers = [0] * len(sizes) if tiers is None else tiers
    return file_table(len(sizes), size=sizes, first_time=times, last_time=times, tier=tiers)


def _merges(files, policy):
    return merges(files, np.arange(len(files)), policy)


def _positions(files, policy=POLICY):
    return [list(run.positions) for run in _merges(files, policy)]


@given(st.integers(2, 9), st.integers(1, 2**62))
def test_a_tier_holds_sizes_of_its_range(ratio, size):
    policy = TierPolicy(ratio, None, ratio, 2**62)
    tier = policy.tier(size)
    assert ratio**tier <= size or tier == 0
    assert size < ratio ** (tier + 1)


def test_enough_files_of_like_size_become_one():
    assert _positions(_files(100, 101, 102)) == []
    assert _positions(_files(100, 101, 102, 103)) == [[0, 1, 2, 3]]


def test_files_of_other_sizes_do_not_count():
    assert _positions(_files(100, 101, 102, 9000)) == []


def test_smaller_files_join_the_tier_that_is_merged():
    assert _positions(_files(100, 10, 101, 102, 103, 9000)) == [[0, 1, 2, 3, 4]]


def test_runs_are_closed_once_they_are_large_enough():
    runs = _positions(_files(*[3000] * 12))
    assert runs == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_bytes_count_like_files():
    policy = TierPolicy(100, 5000, 2, 10_000)
    assert _positions(_files(3000, 3000), policy) == [[0, 1]]
    assert _positions(_files(2100, 2100), policy) == []
    # Enough bytes, and still too few for the next tier, which begins at 4,096.
    assert _positions(_files(1100, 1100), TierPolicy(100, 2000, 4, 10_000)) == []


def test_files_of_different_times_stay_apart():
    policy = TierPolicy(4, None, 4, 10_000, max_time_range=10)
    assert _positions(_files(*[100] * 8, times=[0, 1, 2, 3, 50, 51, 52, 53]), policy) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert _positions(_files(*[100] * 4, times=[0, 20, 40, 60]), policy) == []
    # A window is measured from its first file, not from file to file.
    assert _positions(_files(*[100] * 6, times=[0, 5, 10, 15, 20, 25]), policy) == []


_SIZES = st.lists(st.integers(1, 9_999), max_size=40)


@given(_SIZES, st.integers(2, 8), st.integers(2, 8), st.one_of(st.none(), st.integers(0, 20)), st.randoms())
def test_runs_obey_every_bound(sizes, min_files, ratio, time_range, random):
    policy = TierPolicy(min_files, None, ratio, 10_000, time_range)
    times = sorted(random.randrange(60) for _ in sizes)
    files = _files(*sizes, times=times)
    runs = _merges(files, policy)
    merged = [position for run in runs for position in run.positions]
    assert len(merged) == len(set(merged))
    for run in runs:
        sizes_of_run = [sizes[p] for p in run.positions]
        size = sum(sizes_of_run)
        assert len(sizes_of_run) > 1
        assert list(run.positions) == sorted(run.positions)
        # A run is closed by the file with which it reaches the size.
        assert size - sizes_of_run[-1] < policy.isolate_bytes
        assert run.tier > max(map(policy.tier, sizes_of_run))
        if time_range is not None:
            assert times[run.positions[-1]] - times[run.positions[0]] <= time_range


def test_a_file_that_a_merge_made_smaller_stays_in_its_tier():
    (run,) = _merges(_files(100, 100, 100, 100), POLICY)
    tier = POLICY.tier(100)
    assert run.tier == tier + 1
    # Of 120 bytes, as if most of the inputs were footers: it is no longer of the tier of 100 bytes.
    assert _positions(_files(120, 100, 100, 100, tiers=[run.tier, 0, 0, 0])) == []
    assert _positions(_files(120, 120, 120, 120, tiers=[run.tier] * 4)) == [[0, 1, 2, 3]]


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize("footer", [0, 95, 990])
@pytest.mark.parametrize("rows", [7, 100, 999])
def test_no_row_is_rewritten_more_often_than_there_are_tiers(rows, footer):
    """Files arrive one by one, and whatever may be merged is merged after each; a merged file has one footer."""
    files: list[tuple[int, int, int]] = []  # bytes of rows, how often they were rewritten, tier
    largest_count = 0

    def is_small(file):
        return file[0] + footer < POLICY.isolate_bytes

    for _ in range(2000):
        files.append((rows, 0, 0))
        while True:
            small = [f for f in files if is_small(f)]
            runs = _merges(_files(*(f[0] + footer for f in small), tiers=[f[2] for f in small]), POLICY)
            if not runs:
                break
            gone = {p for run in runs for p in run.positions}
            files = [f for f in files if not is_small(f)] + [f for p, f in enumerate(small) if p not in gone]
            for run in runs:
                of_run = [small[p] for p in run.positions]
                files.append((sum(f[0] for f in of_run), max(f[1] for f in of_run) + 1, run.tier))
        largest_count = max(largest_count, sum(map(is_small, files)))
    tiers = POLICY.tier(POLICY.isolate_bytes - 1) - POLICY.tier(rows + footer) + 1
    assert max(count for _, count, _ in files) <= tiers
    if footer < rows:
        assert largest_count <= (POLICY.min_files - 1) * tiers
