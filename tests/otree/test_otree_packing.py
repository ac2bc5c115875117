"""Packing rows into files."""

import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otree.cube import CubeId
from otree.packing import Packing, pack
from otree.tree import Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange, weight_of

DEPTH = 6


def _rows(seed: int, size: int, skew: float) -> list[tuple[tuple[float, float], int]]:
    source = random.Random(seed)
    return [((source.random() ** skew, source.random()), source.randint(MIN_WEIGHT, MAX_WEIGHT)) for _ in range(size)]


def _assigned(seed: int, size: int, skew: float, desired: int) -> tuple[Tree, list[tuple[CubeId, int]]]:
    rows = _rows(seed, size, skew)
    counts: Counter[CubeId] = Counter()
    for point, _ in rows:
        cube = CubeId.of_point(point, DEPTH)
        counts.update([cube, *cube.ancestors()])
    tree = Tree.estimate(2, counts, {}, desired, DEPTH)
    return tree, [(tree.cube_of(point, weight), weight) for point, weight in rows]


def _check_shape(packing: Packing, cubes: set[CubeId]) -> None:
    assert {piece.cube for piece in packing.pieces} == cubes
    keys = [(piece.cube, piece.first_weight) for piece in packing.pieces]
    assert keys == sorted(set(keys))
    firsts = defaultdict(list)
    for piece in packing.pieces:
        firsts[piece.cube].append(piece.first_weight)
    assert all(first[0] == MIN_WEIGHT for first in firsts.values())
    assert {piece.file for piece in packing.pieces} == set(range(packing.files))


@pytest.mark.parametrize(("skew", "desired"), [(1.0, 500), (1.0, 4000), (5.0, 1000), (1.0, 10**9)])
def test_files_are_balanced(skew: float, desired: int) -> None:
    """Files of random rows are near the target, for cubes below, near and far above it."""
    target = 2000
    tree, rows = _assigned(3, 30_000, skew, desired)
    counts = Counter(cube for cube, _ in rows)
    packing = pack(counts, tree, target)
    _check_shape(packing, set(counts))
    sizes = Counter(packing.file_of(cube, weight) for cube, weight in rows)
    assert len(sizes) == packing.files
    assert 11 <= packing.files <= 20
    assert max(sizes.values()) < 1.85 * target
    assert min(sizes.values()) > 0.35 * target
    assert pack(dict(reversed(counts.items())), tree, target) == packing


def test_bands_bound_what_a_sample_reads() -> None:
    """A sample of a fraction reads little more than the band that holds it, and files are numbered by weight."""
    tree, rows = _assigned(5, 40_000, 2.0, 1000)
    packing = pack(Counter(cube for cube, _ in rows), tree, 1000)
    sizes: Counter[int] = Counter()
    smallest: dict[int, int] = {}
    for cube, weight in rows:
        file = packing.file_of(cube, weight)
        sizes[file] += 1
        smallest[file] = min(weight, smallest.get(file, MAX_WEIGHT))
    for fraction, most in ((0.05, 0.07), (0.1, 0.14), (0.25, 0.27), (0.5, 0.52)):
        read = sum(count for file, count in sizes.items() if smallest[file] < weight_of(fraction))
        assert fraction * 0.95 <= read / len(rows) <= most
    limit = weight_of(0.5)
    top = {file for file, weight in smallest.items() if weight >= limit}
    assert top == set(range(min(top), packing.files))


def test_small_batches_stay_in_one_file() -> None:
    """Up to one and a half targets make one file with one piece per cube."""
    tree, rows = _assigned(1, 1500, 1.0, 200)
    counts = Counter(cube for cube, _ in rows)
    packing = pack(counts, tree, 1000)
    assert packing.files == 1
    assert len(packing.pieces) == len(counts)
    assert pack({}, tree, 1000) == Packing((), 0)


def test_refusals() -> None:
    """Targets and ratios that cannot work are refused, and so is an uncounted cube."""
    tree = Tree(1, {})
    root = CubeId.root(1)
    for target, ratio in ((0, 2.0), (10, 1.0), (10, float("nan"))):
        with pytest.raises(ValueError, match="Cannot pack"):
            pack({root: 1}, tree, target, ratio)
    with pytest.raises(KeyError):
        pack({root: 1}, tree, 10).file_of(root.child(0), 0)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.integers(0, 84), st.integers(0, 5000), min_size=1, max_size=40),
    st.lists(st.integers(MIN_WEIGHT, MAX_WEIGHT - 1), min_size=21, max_size=21),
    st.integers(1, 3000),
    st.floats(1.1, 8.0),
    st.integers(MIN_WEIGHT, MAX_WEIGHT),
)
def test_every_row_has_one_file(
    drawn: dict[int, int], thresholds: list[int], target: int, ratio: float, weight: int
) -> None:
    """For any tree and counts: dense numbers, a file for every weight, expected sizes bounded, one file per range."""
    cubes = [CubeId.of_cell(cell, 2, depth) for depth in range(4) for cell in range(4**depth)]
    tree = Tree(2, dict(zip(cubes, sorted(thresholds), strict=False)))
    counts = {cubes[index]: count for index, count in drawn.items()}
    packing = pack(counts, tree, target, ratio)
    _check_shape(packing, set(counts))
    expected: dict[int, float] = defaultdict(float)
    for cube, count in counts.items():
        assert 0 <= packing.file_of(cube, weight) < packing.files
        taken = tree.weight_range(cube)
        firsts = [piece for piece in packing.pieces if piece.cube == cube]
        ends = [piece.first_weight for piece in firsts[1:]] + [MAX_WEIGHT + 1]
        if taken.first > taken.last:
            taken = WeightRange(taken.last, taken.last)
        for piece, end in zip(firsts, ends, strict=True):
            assert packing.file_of(cube, piece.first_weight) == packing.file_of(cube, end - 1) == piece.file
            part = min(end - 1, taken.last) - max(piece.first_weight, taken.first) + 1
            expected[piece.file] += count * max(part, 0) / (taken.last - taken.first + 1)
    assert sum(expected.values()) == pytest.approx(sum(counts.values()))
    # Weights that are all alike cannot be cut, so such a cube may exceed the target.
    uncuttable = max((count for cube, count in counts.items() if _width(tree, cube) < 10**6), default=0)
    assert max(expected.values()) <= max(1.7501 * target, 1.0) + uncuttable * len(counts)


def _width(tree: Tree, cube: CubeId) -> int:
    taken = tree.weight_range(cube)
    return taken.last - taken.first + 1
