"""Consolidation in steps: published examples, a search by brute force, and many files."""

from fractions import Fraction
from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.groups.boxes import Boxes
from procedures.groups.cutter import Limits, pieces
from procedures.selection.consolidation_steps import consolidation
from procedures.selection.step_runs import StepPolicy, widened

# Four fragments of these numbers of cells, as TileDB's tests of its documented algorithm write them.
PUBLISHED = (200, 50, 60, 100)


def _files(sizes, boxes=None):
    size = np.array(sizes, np.int64)
    if boxes is None:
        return Boxes(size, np.zeros((len(size), 0)), np.zeros((len(size), 0)))
    corners = np.array(boxes, np.float64).reshape(len(sizes), -1, 2)
    return Boxes(size, corners[:, :, 0], corners[:, :, 1])


def _left(sizes, policy):
    """How many files there are after the steps, where no result is split."""
    return len(sizes) - sum(end - first - 1 for first, end in consolidation(_files(sizes), policy).results)


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (StepPolicy(steps=1, min_files=2, max_files=2), 3),
        (StepPolicy(steps=2, min_files=2, max_files=2), 2),
        (StepPolicy(steps=2, min_files=2, max_files=2, size_ratio=1.0), 4),
        (StepPolicy(steps=1, min_files=2, max_files=2, size_ratio=0.5), 3),
        (StepPolicy(steps=2, min_files=2, max_files=2, size_ratio=0.5), 2),
        (StepPolicy(steps=10, min_files=2, max_files=2, size_ratio=0.5), 1),
        (StepPolicy(steps=1, min_files=2, max_files=3), 2),
        (StepPolicy(steps=1, min_files=2, max_files=8), 1),
    ],
    ids=str,
)
def test_published_examples(policy, left):
    assert _left(PUBLISHED, policy) == left


def test_the_smallest_of_the_longest_runs_is_taken_first():
    found = consolidation(_files(PUBLISHED), StepPolicy(max_files=2, size_ratio=0.5))
    # 50 and 60 become 110; 110 and 100 become 210; 200 and 210 become one file.
    assert [(s.first, s.end, s.files, s.bytes) for s in found.steps] == [(1, 3, 2, 110), (1, 4, 2, 210), (0, 4, 2, 410)]
    # Three steps, and each row is written once.
    assert found.results == ((0, 4),)


def test_a_large_file_is_not_consolidated_with_a_small_one():
    # The documentation's example: 100 GB and 1 MB.
    sizes = (100 * 10**9, 10**6, 10**6)
    assert consolidation(_files(sizes), StepPolicy(size_ratio=0.1)).results == ((1, 3),)
    assert consolidation(_files(sizes), StepPolicy()).results == ((0, 3),)


def test_of_equal_runs_the_oldest_is_taken():
    (step,) = consolidation(_files([5] * 6), StepPolicy(steps=1, max_files=3)).steps
    assert (step.first, step.end) == (0, 3)


def test_steps_end_when_no_run_has_enough_files():
    assert consolidation(_files([5] * 5), StepPolicy(min_files=6)).steps == ()
    assert consolidation(_files([5] * 5), StepPolicy(steps=0)).steps == ()
    for sizes in ([], [5]):
        assert consolidation(_files(sizes), StepPolicy()).steps == ()


def test_amplification_keeps_distant_boxes_apart():
    boxes = [[(0, 1), (0, 1)], [(1, 2), (0, 1)], [(8, 9), (8, 9)]]
    assert consolidation(_files([5] * 3, boxes), StepPolicy(amplification=1.0)).results == ((0, 2),)
    # The box around all three has 81 cells; it is 27 times their sum.
    assert consolidation(_files([5] * 3, boxes), StepPolicy(amplification=27.0)).results == ((0, 3),)
    assert consolidation(_files([5] * 3, boxes), StepPolicy()).results == ((0, 3),)


def test_files_without_a_known_box_stay_alone():
    boxes = [[(0, 1)], [(float("nan"), float("nan"))], [(0, 1)], [(0, 1)]]
    assert consolidation(_files([5] * 4, boxes), StepPolicy(amplification=100.0)).results == ((2, 4),)


def test_boxes_are_widened_to_cubes():
    low, high = np.array([[0.25, 0.3], [1.0, np.nan]]), np.array([[0.25, 0.6], [1.0, np.nan]])
    first, end = widened(low, high, 2)
    assert first.tolist()[0] == [0.25, 0.25]
    assert end.tolist()[0] == [0.5, 0.75]
    assert (first[1, 0], end[1, 0]) == (0.75, 1.0)
    assert np.isnan(first[1, 1])
    assert np.isnan(end[1, 1])


def test_a_result_is_split_between_files():
    assert list(pieces(np.array([40, 40, 40, 130, 20]), Limits(100))) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert list(pieces(np.array([40, 40]), Limits(None))) == [(0, 2)]
    found = consolidation(_files([40, 40, 40, 130, 20, 30]), StepPolicy(max_bytes=100))
    assert found.results == ((0, 2), (4, 6))
    # A second look at what was written finds nothing.
    assert consolidation(_files([80, 40, 130, 50]), StepPolicy(max_bytes=100)).results == ()


# ------------------------------------------------------------------------------------------------------- brute force


def _volume(boxes):
    return prod(max(b[d][1] for b in boxes) - min(b[d][0] for b in boxes) for d in range(len(boxes[0])))


def _qualifies(run, policy):
    """Each of a run: members, bytes, box."""
    if len(run) < max(policy.min_files, 2) or (policy.max_files is not None and len(run) > policy.max_files):
        return False
    sizes = [size for _, size, _ in run]
    if any(min(a, b) < Fraction(policy.size_ratio) * max(a, b) for a, b in pairwise(sizes)):
        return False
    if policy.amplification is not None:
        boxes = [box for _, _, box in run]
        if _volume(boxes) > Fraction(policy.amplification) * sum(_volume([box]) for box in boxes):
            return False
    return len(_cut(run, policy.max_bytes)) < len(run)


def _cut(run, most):
    results = []
    for members, size, box in run:
        if results and (most is None or results[-1][1] + size <= most):
            members_before, size_before, box_before = results[-1]
            around = None
            if box is not None:
                around = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(box_before, box, strict=True)]
            results[-1] = (members_before + members, size_before + size, around)
        else:
            results.append((members, size, box))
    return results


def _by_brute_force(sizes, boxes, policy):
    files = [([n], size, boxes[n] if boxes else None) for n, size in enumerate(sizes)]
    steps = 0
    while policy.steps is None or steps < policy.steps:
        runs = [(first, end) for first in range(len(files)) for end in range(first + 2, len(files) + 1)]
        runs = [(first, end) for first, end in runs if _qualifies(files[first:end], policy)]
        if not runs:
            break
        first, end = min(runs, key=lambda r: (r[0] - r[1], sum(size for _, size, _ in files[r[0] : r[1]]), r[0]))
        files[first:end] = _cut(files[first:end], policy.max_bytes)
        steps += 1
    return steps, tuple((m[0], m[-1] + 1) for m, _, _ in files if len(m) > 1)


@st.composite
def _histories(draw):
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 16, 100]), max_size=9))
    dimensions = draw(st.integers(1, 2))
    ranges = st.tuples(st.integers(0, 6), st.integers(1, 3)).map(lambda r: (r[0], r[0] + r[1]))
    boxes = [draw(st.tuples(*[ranges] * dimensions)) for _ in sizes]
    min_files = draw(st.integers(2, 4))
    policy = StepPolicy(
        draw(st.one_of(st.none(), st.integers(0, 4))),
        min_files,
        draw(st.one_of(st.none(), st.integers(min_files, 6))),
        draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        draw(st.sampled_from([None, 1.0, 1.5, 2.0, 4.0])),
        draw(st.sampled_from([None, 1, 6, 20, 110])),
    )
    return sizes, boxes, policy


@given(_histories())
def test_the_choice_is_that_of_a_brute_force(history):
    sizes, boxes, policy = history
    found = consolidation(_files(sizes, boxes or None), policy)
    assert (len(found.steps), found.results) == _by_brute_force(sizes, boxes, policy)


@given(_histories())
def test_a_second_look_finds_nothing(history):
    sizes, boxes, policy = history
    policy = StepPolicy(None, policy.min_files, policy.max_files, policy.size_ratio, policy.amplification)
    left, after, corners = 0, [], []
    for first, end in (*consolidation(_files(sizes, boxes or None), policy).results, (len(sizes), len(sizes))):
        after += sizes[left:first] + ([sum(sizes[first:end])] if end > first else [])
        around = [(min(b[d][0] for b in boxes[first:end]), max(b[d][1] for b in boxes[first:end]))
                  for d in range(len(boxes[0]))] if end > first else None  # fmt: skip
        corners += list(boxes[left:first]) + ([around] if around else [])
        left = end
    assert consolidation(_files(after, corners or None), policy).steps == ()


@pytest.mark.parametrize(
    "policy",
    [
        StepPolicy(),
        StepPolicy(max_files=20, size_ratio=0.5),
        StepPolicy(max_files=10, max_bytes=10**9),
        StepPolicy(max_files=20, amplification=2.0, steps=2000),
    ],
    ids=["all", "ratio", "split", "boxes"],
)
def test_many_files(policy):
    random = np.random.default_rng(7)
    count = 20_000
    low = random.random((count, 4))
    sizes = np.exp(random.normal(14, 2, count)).astype(np.int64)
    files = Boxes(sizes, *widened(low, np.minimum(low + 0.3, 1), 3))
    found = consolidation(files, policy)
    assert found.steps
    ends = [0, *(position for result in found.results for position in result), count]
    assert ends == sorted(ends)
