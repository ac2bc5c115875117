"""The bounded groups of a plan: what they hold, what they promise, and sets that are too large for one group."""

import time

import numpy as np
import pyarrow as pa
import pytest
from file_lists import COLUMNS, ListedFile
from hypothesis import given
from hypothesis import strategies as st

from catalog.files.file_table import FileTable
from procedures.groups.cutter import Limits
from procedures.selection.table_plan import planned_groups

DESIRED = 100
WIDE = Limits(4 * DESIRED, 1000)


def _table(size, low, high, rows):
    """Unindexed files in the order of their names, with the ranges of some columns."""
    listed = [
        ListedFile(f"{n:06}", int(size[n]), n, 0, None, (("", 0, 1, rows[n] or 0),), 0, rows[n] is not None, None)
        for n in range(len(size))
    ]
    files = FileTable.of(pa.Table.from_pylist([file.of_columns() for file in listed], schema=COLUMNS))
    return files.with_ranges(low, high)


def _groups(entries, rows=None, limits=WIDE):
    """Each entry a size and, per dimension, the ends of its range."""
    corners = np.array([box for _, box in entries], np.float64).reshape(len(entries), -1, 2)
    files = _table([size for size, _ in entries], corners[:, :, 0], corners[:, :, 1], rows or [50] * len(entries))
    return list(planned_groups(files, DESIRED, limits, ["x", "y", "z"]))


def _runs(group):
    """The positions of the files of each run."""
    return tuple(tuple(int(path) for path in run.paths) for run in group.runs)


def _depths(group):
    return group.expected.depth_before, group.expected.depth_after


def _shown(groups):
    return [(g.reason, _runs(g), g.expected.files) for g in groups]


def test_overlapping_files_become_runs_along_the_values():
    entries = [(40, [(6, 9)]), (40, [(0, 3)]), (40, [(5, 7)]), (40, [(2, 5)])]
    (group,) = _groups(entries)
    assert _shown([group]) == [("OVERLAP", ((1, 3), (2, 0)), 2)]
    # At 5 two files meet before, and both results do.
    assert (group.bytes, *_depths(group)) == (160, 2, 2)


def test_files_that_would_be_alone_stay_and_large_ones_are_divided_alone():
    entries = [(40, [(0, 9)]), (40, [(1, 9)]), (90, [(2, 9)]), (350, [(3, 9)])]
    groups = _groups(entries)
    assert _shown(groups) == [("OVERLAP", ((0, 1),), 1), ("LARGE", ((3,),), 4)]
    # The merged file, the one that stays, and four parts that may each have all values of the large file.
    assert [_depths(g) for g in groups] == [(4, 6), (4, 6)]
    assert _shown(_groups(entries[2:3] * 3)) == []


def test_files_of_unknown_or_too_few_rows_are_not_divided():
    large = [(350, [(0, 0)])]
    assert _shown(_groups(large, [3])) == [("LARGE", ((0,),), 3)]
    assert _groups(large, [None]) == _groups(large, [1]) == []


def test_a_large_set_is_cut_where_the_fewest_boxes_reach_across():
    entries = [(25, [(n, n + 1.5)]) for n in range(8)] + [(25, [(n + 0.5, n + 2)]) for n in range(9, 17)]
    entries.append((25, [(8, 9.6)]))
    groups = _groups(entries, limits=Limits(300, 1000))
    assert [(g.reason, len(g.runs)) for g in groups] == [("OVERLAP_CUT", 2), ("OVERLAP_CUT", 2)]
    assert {g.note.partition("; ")[2] for g in groups} == {
        "one of 2 parts of a set of overlapping files, which is cut along x; 1 file reaches across the cuts"
    }
    begins = [[entries[n][1][0][0] for n in run] for g in groups for run in _runs(g)]
    assert [(min(of_run), max(of_run)) for of_run in begins] == [(0, 3), (4, 7), (8, 11.5), (12.5, 15.5)]


def test_files_of_equal_boxes_are_cut_in_their_order():
    groups = _groups([(40, [(0, 1)])] * 20)
    assert [run for g in groups for run in _runs(g)] == [(n, n + 1) for n in range(0, 20, 2)]
    assert {(*_depths(g), "cut along time" in g.note) for g in groups} == {(20, 10, True)}
    assert all(g.bytes <= WIDE.bytes for g in groups)


def test_many_tiny_files_are_several_groups_by_number():
    groups = _groups([(0, [(n, n)]) for n in range(2500)])
    assert {g.reason for g in groups} == {"SMALL"}
    assert sorted(n for g in groups for run in _runs(g) for n in run) == list(range(2500))
    assert max(len(run.paths) for g in groups for run in g.runs) <= 1000


@st.composite
def _tables(draw):
    dimensions = draw(st.integers(1, 3))
    ranges = st.tuples(st.integers(0, 20), st.sampled_from([0, 1, 3, 20])).map(lambda r: (r[0], r[0] + r[1]))
    entry = st.tuples(st.sampled_from([1, 20, 60, 100, 151, 900]), st.tuples(*[ranges] * dimensions))
    return draw(st.lists(entry, min_size=1, max_size=30))


@given(_tables(), st.sampled_from([Limits(400, 5), Limits(100, 1000), Limits(1, 1)]))
def test_groups_are_bounded_share_no_file_and_make_progress(table, limits):
    groups = _groups(table, limits=limits)
    taken = [n for g in groups for run in _runs(g) for n in run]
    assert len(taken) == len(set(taken))
    for group in groups:
        sizes = [[table[n][0] for n in run] for run in _runs(group)]
        assert group.bytes == sum(map(sum, sizes))
        count = sum(map(len, sizes))
        if group.reason == "LARGE":
            assert (count, group.expected.files > 1) == (1, True)
            continue
        assert group.expected.files == len(group.runs) < count <= limits.files
        assert group.bytes <= limits.bytes
        assert all(sum(run) <= DESIRED for run in sizes)


@given(_tables(), st.sampled_from([WIDE, Limits(400, 5), Limits(100, 1000)]))
def test_the_reason_is_overlap_where_files_of_the_group_overlap(table, limits):
    """Every pair, one by one; a set may hold files that meet only others of it."""
    for group in _groups(table, limits=limits):
        boxes = [table[n][1] for run in _runs(group) for n in run]
        meet = any(
            all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(first, second, strict=True))
            for number, first in enumerate(boxes)
            for second in boxes[:number]
        )
        assert group.reason.startswith("OVERLAP") == (meet and group.reason != "LARGE")


def _deepest_point(boxes):
    """The most boxes that hold one of the points at which boxes begin."""
    points = [np.array(p) for p in {tuple(x[0] for x in box) for box in boxes}]
    points += [np.array([max(a[d][0], b[d][0]) for d in range(len(a))]) for a in boxes for b in boxes]
    return max(
        sum(all(lo <= v <= hi for (lo, hi), v in zip(box, point, strict=True)) for box in boxes) for point in points
    )


@given(_tables(), st.sampled_from([Limits(400, 5), Limits(100, 1000)]))
def test_no_point_is_in_more_files_than_the_depth_afterwards(table, limits):
    groups = _groups(table, limits=limits)
    # Outputs of groups of one depth are compared: a set has one figure, sets do not overlap.
    for group in groups:
        boxes = [
            [
                (min(table[n][1][d][0] for n in run), max(table[n][1][d][1] for n in run))
                for d in range(len(table[0][1]))
            ]
            for run in _runs(group)
            for _ in range(group.expected.files if group.reason == "LARGE" else 1)
        ]
        assert _deepest_point(boxes) <= group.expected.depth_after


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one set", "equal boxes", "no overlap"])
def test_many_files_are_grouped_within_a_minute(kind):
    count, rng = 100_000, np.random.default_rng(1)
    low = rng.random((count, 2)) if kind != "equal boxes" else np.zeros((count, 2))
    width = {"one set": 0.01, "equal boxes": 1.0, "no overlap": 1e-7}[kind]
    files = _table(rng.integers(10**6, 3 * 10**8, count), low, low + width, [1000] * count)
    started = time.process_time()
    groups = list(planned_groups(files, 10**9, Limits(4 * 10**9, 10_000), ["x", "y"]))
    assert time.process_time() - started < 60
    assert max(g.bytes for g in groups) <= 4 * 10**9
    assert sum(len(run.paths) for g in groups for run in g.runs) > 0.9 * count
