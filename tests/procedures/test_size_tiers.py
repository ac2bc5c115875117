"""Size tiers: which files are merged, and how often a row is rewritten over a history."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.selection.size_tiers import SmallFiles, TierPolicy, merges

POLICY = TierPolicy(min_files=4, min_bytes=None, tier_ratio=4, isolate_bytes=10_000)


def _files(*sizes, times=None):
    times = list(range(len(sizes))) if times is None else times
    return SmallFiles(np.array(sizes, np.int64), np.array(times, np.int64), np.array(times, np.int64))


@given(st.integers(2, 9), st.integers(1, 2**62))
def test_a_tier_holds_sizes_of_its_range(ratio, size):
    policy = TierPolicy(ratio, None, ratio, 2**62)
    tier = policy.tier(size)
    assert ratio**tier <= size or tier == 0
    assert size < ratio ** (tier + 1)


def test_enough_files_of_like_size_become_one():
    assert merges(_files(100, 101, 102), POLICY) == []
    assert merges(_files(100, 101, 102, 103), POLICY) == [[0, 1, 2, 3]]


def test_files_of_other_sizes_do_not_count():
    assert merges(_files(100, 101, 102, 9000), POLICY) == []


def test_smaller_files_join_the_tier_that_is_merged():
    assert merges(_files(100, 10, 101, 102, 103, 9000), POLICY) == [[0, 1, 2, 3, 4]]


def test_runs_are_closed_once_they_are_large_enough():
    runs = merges(_files(*[3000] * 12), POLICY)
    assert runs == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_bytes_count_like_files():
    policy = TierPolicy(100, 5000, 2, 10_000)
    assert merges(_files(3000, 3000), policy) == [[0, 1]]
    assert merges(_files(2100, 2100), policy) == []


def test_files_of_different_times_stay_apart():
    policy = TierPolicy(4, None, 4, 10_000, max_time_range=10)
    assert merges(_files(*[100] * 8, times=[0, 1, 2, 3, 50, 51, 52, 53]), policy) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert merges(_files(*[100] * 4, times=[0, 20, 40, 60]), policy) == []


_SIZES = st.lists(st.integers(1, 9_999), max_size=40)


@given(_SIZES, st.integers(2, 8), st.integers(2, 8), st.one_of(st.none(), st.integers(0, 20)), st.randoms())
def test_runs_obey_every_bound(sizes, min_files, ratio, time_range, random):
    policy = TierPolicy(min_files, None, ratio, 10_000, time_range)
    times = sorted(random.randrange(60) for _ in sizes)
    files = _files(*sizes, times=times)
    runs = merges(files, policy)
    merged = [position for run in runs for position in run]
    assert len(merged) == len(set(merged))
    for run in runs:
        size = sum(sizes[p] for p in run)
        assert len(run) > 1
        assert run == sorted(run)
        # A run is closed by the file with which it reaches the size.
        assert size - sizes[run[-1]] < policy.isolate_bytes
        assert size >= policy.isolate_bytes or policy.tier(size) > max(policy.tier(sizes[p]) for p in run)
        if time_range is not None:
            assert times[run[-1]] - times[run[0]] <= time_range


@pytest.mark.parametrize("size", [7, 100, 999])
def test_no_row_is_rewritten_more_often_than_there_are_tiers(size):
    """Files arrive one by one, and whatever may be merged is merged after each."""
    files: list[tuple[int, int]] = []  # bytes, and how often they were rewritten
    largest_count = 0
    for _ in range(3000):
        files.append((size, 0))
        while True:
            small = [f for f in files if f[0] < POLICY.isolate_bytes]
            runs = merges(_files(*(s for s, _ in small)), POLICY)
            if not runs:
                break
            gone = {p for run in runs for p in run}
            files = [f for f in files if f[0] >= POLICY.isolate_bytes] + [
                f for p, f in enumerate(small) if p not in gone
            ]
            files += [(sum(small[p][0] for p in run), max(small[p][1] for p in run) + 1) for run in runs]
        largest_count = max(largest_count, sum(f[0] < POLICY.isolate_bytes for f in files))
    tiers = POLICY.tier(POLICY.isolate_bytes - 1) - POLICY.tier(size) + 1
    assert max(count for _, count in files) <= tiers
    assert largest_count <= (POLICY.min_files - 1) * tiers
