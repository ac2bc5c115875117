"""Lists are cut into pieces, against a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.groups.cutter import MAX_FILES_PER_GROUP, Limits, first_piece, parts_of, pieces


def _by_loop(sizes, counts, most_bytes, most_files, crossing, labels):
    found, current = [], []
    for n in range(len(sizes)):
        size, files = sum(sizes[i] for i in current), sum(counts[i] for i in current)
        is_full = files + counts[n] > most_files
        if most_bytes is not None:
            is_full |= size >= most_bytes if crossing else size + sizes[n] > most_bytes
        is_full |= n > 0 and labels[n] != labels[n - 1]
        if current and is_full:
            found.append((current[0], n))
            current = []
        current.append(n)
    return [*found, (current[0], len(sizes))] if current else found


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 2)), max_size=20),
    st.one_of(st.none(), st.integers(1, 30), st.sampled_from([2**63 - 1])),
    st.integers(1, 12),
    st.booleans(),
)
def test_pieces_are_those_of_a_loop(entries, most_bytes, most_files, crossing):
    sizes, counts, labels = ([entry[n] for entry in entries] for n in range(3))
    size, files, within = (np.array(values, np.int64) for values in (sizes, counts, labels))
    limits = Limits(most_bytes, most_files)
    found = pieces(size, limits, crossing=crossing, files=files)
    assert list(found) == _by_loop(sizes, counts, most_bytes, most_files, crossing, [1] * len(sizes))
    found = pieces(size, limits, crossing=crossing, files=files, within=within)
    assert list(found) == _by_loop(sizes, counts, most_bytes, most_files, crossing, labels)


@pytest.mark.parametrize(
    ("sizes", "limit", "taken"),
    [
        ([], 10, 0),
        ([5], 10, 1),
        ([50], 10, 1),
        ([5, 5, 5], 10, 2),
        ([5, 4, 5, 1], 10, 3),
        ([0, 0, 0], 1, 3),
        ([5, 5, 5], 10**12, 3),
        ([5, 5, 0], 2**63 - 1, 3),
        ([0] * (MAX_FILES_PER_GROUP + 5), 1, MAX_FILES_PER_GROUP),
    ],
)
def test_the_first_piece_includes_the_crossing_file(sizes, limit, taken):
    assert first_piece(np.array(sizes, np.int64), limit) == taken


def test_the_parts_of_a_cut_are_whole():
    size = np.array([1, 500, 1, 1], np.int64)
    low = np.array([[0.0], [1], [1], [1]])
    parts = parts_of(size, low, low + 5, Limits(100, 100))
    assert sorted(map(list, parts.members)) == [[0], [1], [2, 3]]
