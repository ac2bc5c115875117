"""The consolidation plan: published examples, a plan by brute force, and many files."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.groups.boxes import Boxes, depths, overlap_groups
from procedures.groups.consolidation_plan import Reason, consolidation_plan, curve_places

SMALL, LARGE, DESIRED = 4, 200, 100


def _files(*entries):
    """Each a size and, per dimension, the ends of its range."""
    dimensions = max((len(box) for _, box in entries), default=1)
    corners = np.array([box for _, box in entries], np.float64).reshape(-1, dimensions, 2)
    return Boxes(np.array([size for size, _ in entries], np.int64), corners[:, :, 0], corners[:, :, 1])


def _square(first, last):
    return [(first, last), (first, last)]


def _plan(desired, *entries):
    return [(group.reason.value, group.files) for group in consolidation_plan(_files(*entries), desired)]


def test_published_examples_of_overlap():
    first, second = (SMALL, _square(1, 4)), (SMALL, _square(2, 6))
    assert _plan(1, first, second)[0] == ("OVERLAP", (0, 1))
    others = (SMALL, _square(10, 14)), (SMALL, _square(12, 16))
    assert _plan(1, first, second, *others) == [("OVERLAP", (0, 1)), ("OVERLAP", (2, 3))]
    # The third meets neither of the first two, but the box around them.
    assert _plan(1, first, (SMALL, _square(4, 6)), (SMALL, [(1, 1), (6, 6)])) == [("OVERLAP", (0, 1, 2))]


def test_published_examples_of_sizes():
    assert _plan(10 * SMALL, (LARGE, _square(1, 1)), (9 * SMALL, _square(2, 4))) == [("LARGE", (0,))]
    assert _plan(DESIRED, (SMALL, _square(1, 2)), (SMALL, _square(3, 4))) == [("SMALL", (0, 1))]
    between = [(SMALL, _square(1, 2)), (LARGE, _square(3, 3)), (SMALL, _square(5, 6))]
    assert _plan(DESIRED, *between) == [("LARGE", (1,))]
    beyond = [(SMALL, _square(1, 2)), (LARGE, _square(8, 8)), (SMALL, _square(5, 6))]
    assert _plan(DESIRED, *beyond) == [("SMALL", (0, 2)), ("LARGE", (1,))]


def test_a_published_example_of_all_three():
    files = [
        (SMALL, _square(11, 14)),
        (SMALL, _square(14, 16)),
        (LARGE, [(11, 11), (16, 16)]),
        (SMALL, _square(1, 1)),
        (LARGE, _square(2, 2)),
        (SMALL, _square(20, 20)),
        (SMALL, _square(30, 30)),
    ]
    assert _plan(DESIRED, *files) == [("OVERLAP", (0, 1, 2)), ("SMALL", (5, 6)), ("LARGE", (4,))]


def test_sets_tell_how_deep_they_are():
    overlap, large = consolidation_plan(
        _files((90, [(0, 4)]), (90, [(1, 5)]), (90, [(2, 3)]), (90, [(5, 9)]), (301, [(20, 21)])), DESIRED
    )
    assert (overlap.files, overlap.depth) == ((0, 1, 2, 3), 3)
    assert (large.reason, large.files, large.depth) == (Reason.LARGE, (4,), 1)


def test_files_without_a_known_box_are_only_split():
    nan = float("nan")
    assert _plan(DESIRED, (SMALL, [(nan, nan)]), (LARGE, [(nan, 3)]), (SMALL, [(0, 9)])) == [("LARGE", (1,))]
    assert _plan(DESIRED) == []


# ------------------------------------------------------------------------------------------------------- brute force


def _overlap(a, b):
    return all(x[0] <= y[1] and y[0] <= x[1] for x, y in zip(a, b, strict=True))


def _around(a, b):
    return [(min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True)]


def _joined_by_brute_force(boxes):
    groups = [([n], list(box)) for n, box in enumerate(boxes)]
    while True:
        pair = next(
            ((a, b) for a in range(len(groups)) for b in range(a) if _overlap(groups[a][1], groups[b][1])), None
        )
        if pair is None:
            return groups
        second, first = groups.pop(pair[0]), groups.pop(pair[1])
        groups.append((first[0] + second[0], _around(first[1], second[1])))


def _plan_by_brute_force(sizes, boxes, desired):
    nodes = sorted((sorted(members), box) for members, box in _joined_by_brute_force(boxes))
    size = [sum(sizes[n] for n in members) for members, _ in nodes]
    small = [n for n in range(len(nodes)) if 2 * size[n] < desired]
    if small:
        corners = np.array([nodes[n][1] for n in small], np.float64)
        places = curve_places(corners[:, :, 0], corners[:, :, 1]).tolist()
        small = [n for _, n in sorted(zip(places, small, strict=True))]
    groups = {n: ([n], nodes[n][1]) for n in range(len(nodes))}
    last = None
    for n in small:
        if last is not None:
            around = _around(groups[last][1], nodes[n][1])
            others = [box for other, (_, box) in groups.items() if other not in (last, n)]
            total = sum(size[m] for m in (*groups[last][0], n))
            if total <= desired and not any(_overlap(around, box) for box in others):
                groups[last] = (groups[last][0] + groups.pop(n)[0], around)
                continue
        last = n
    found = []
    for members, _ in groups.values():
        files = sorted(file for n in members for file in nodes[n][0])
        if len(files) > 1:
            kind = "OVERLAP" if any(len(nodes[n][0]) > 1 for n in members) else "SMALL"
            found.append((kind, tuple(files)))
        elif 2 * sizes[files[0]] > 3 * desired:
            found.append(("LARGE", tuple(files)))
    return sorted(found, key=lambda group: (["OVERLAP", "SMALL", "LARGE"].index(group[0]), group[1]))


@st.composite
def _tables(draw):
    dimensions = draw(st.integers(1, 3))
    ranges = st.tuples(st.integers(0, 30), st.sampled_from([0, 0, 1, 3, 9])).map(lambda r: (r[0], r[0] + r[1]))
    entry = st.tuples(st.sampled_from([1, 20, 40, 60, 100, 151, 400]), st.tuples(*[ranges] * dimensions))
    return draw(st.lists(entry, max_size=14))


@given(_tables(), st.sampled_from([2, 41, 100, 1000]))
def test_the_plan_is_that_of_a_brute_force(table, desired):
    expected = _plan_by_brute_force([size for size, _ in table], [box for _, box in table], desired)
    assert _plan(desired, *table) == expected


@given(_tables())
def test_groups_do_not_overlap(table):
    files = _files(*table)
    boxes = []
    for group in consolidation_plan(files, 100):
        chosen = list(group.files)
        boxes.append((files.low[chosen].min(axis=0), files.high[chosen].max(axis=0)))
    for n, (low, high) in enumerate(boxes):
        assert not any(((low <= h) & (high >= lo)).all() for lo, h in boxes[:n])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=20))
def test_depths_are_counted_at_every_point(intervals):
    names = sorted({name for name, _, _ in intervals})
    group = np.array([names.index(name) for name, _, _ in intervals])
    low = np.array([first for _, first, _ in intervals], np.float64)
    high = low + [length for _, _, length in intervals]
    expected = [
        max(sum(g == n and lo <= x <= hi for g, lo, hi in zip(group, low, high, strict=True)) for x in range(14))
        for n in range(len(names))
    ]
    assert depths(group, len(names), low, high).tolist() == expected


@pytest.mark.parametrize("dimensions", [1, 2, 4])
def test_many_files(dimensions):
    random = np.random.default_rng(3)
    side = round(4096 ** (1 / dimensions))
    cells = np.stack(np.meshgrid(*[np.arange(side)] * dimensions), axis=-1).reshape(-1, dimensions).astype(np.float64)
    cells = random.permutation(cells)
    files = Boxes(random.integers(1, 60, len(cells)), cells, cells + 0.9)
    plan = consolidation_plan(files, DESIRED)
    positions = [position for group in plan for position in group.files]
    assert len(positions) == len(set(positions)) > 100
    assert {group.reason for group in plan} == {Reason.SMALL}
    # All of them overlap if each reaches into the next.
    assert overlap_groups(cells, cells + 1.0)[0].max() == 0
    assert all(a.files < b.files for a, b in pairwise(plan))
