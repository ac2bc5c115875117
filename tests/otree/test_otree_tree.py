"""The tree: estimation, current state, ordinals."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.cube import CubeId
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange, fraction_of

Row = tuple[tuple[float, ...], int]
DEPTH = 8


def rows_of(seed: int, size: int, skew: float, dimensions: int = 2) -> list[Row]:
    """Draw random rows; a skew above 1 crowds them near 0."""
    source = random.Random(seed)
    return [
        (tuple(source.random() ** skew for _ in range(dimensions)), source.randint(MIN_WEIGHT, MAX_WEIGHT))
        for _ in range(size)
    ]


def counts_of(rows: list[Row], depth: int = DEPTH) -> Counter[CubeId]:
    """Count the rows in every cube's space."""
    deepest = Counter(CubeId.of_point(point, depth) for point, _ in rows)
    counts = Counter(deepest)
    for cube, count in deepest.items():
        for above in cube.ancestors():
            counts[above] += count
    return counts


def states_of(tree: Tree, rows: list[Row]) -> dict[CubeId, CubeState]:
    """Write the rows into blocks."""
    elements = Counter(tree.cube_of(point, weight) for point, weight in rows)
    return {cube: CubeState(tree.threshold(cube), count) for cube, count in elements.items()}


def assert_thresholds_rise(tree: Tree) -> None:
    """No inner cube's threshold is below its parent's."""
    for cube, threshold in tree.thresholds.items():
        assert cube.parent is None or tree.thresholds[cube.parent] <= threshold


@pytest.mark.parametrize("skew", [1.0, 4.0])
def test_inner_cubes_hold_the_desired_rows(skew: float) -> None:
    """With exact counts each inner cube is expected to hold the desired rows, and random weights come close."""
    rows, desired = rows_of(1, 50_000, skew), 1000
    counts = counts_of(rows)
    tree = Tree.estimate(2, counts, {}, desired, DEPTH)
    assert len(tree.thresholds) > 5
    assert_thresholds_rise(tree)
    elements = Counter(tree.cube_of(point, weight) for point, weight in rows)
    for cube, threshold in tree.thresholds.items():
        start = fraction_of(tree.threshold(cube.parent)) if cube.parent else 0.0
        assert counts[cube] * (fraction_of(threshold) - start) == pytest.approx(desired, abs=0.01)
        # Five standard deviations of a sample of 1000, and 10 % on average.
        assert abs(elements[cube] - desired) < 160
    inner = [elements[cube] for cube in tree.thresholds]
    assert sum(inner) / len(inner) == pytest.approx(desired, rel=0.1)
    leaves = [count for cube, count in elements.items() if cube not in tree.thresholds]
    assert max(leaves) < 1160
    assert sum(elements.values()) == len(rows)


def test_duplicates_stop_at_the_greatest_depth() -> None:
    """One point many times is split down to the limit and no further."""
    counts = {CubeId.of_point((0.3, 0.3), depth): 10_000 for depth in range(4)}
    tree = Tree.estimate(2, counts, {}, 100, 3)
    assert sorted(cube.depth for cube in tree.thresholds) == [0, 1, 2]
    with pytest.raises(ValueError, match="at least one"):
        Tree.estimate(2, counts, {}, 0, 3)


def test_nothing_and_little_make_a_leaf() -> None:
    """No rows, few rows and existing rows without new ones leave the root a leaf."""
    root = CubeId.root(3)
    assert Tree.estimate(3, {}, {}, 10, 5).thresholds == {}
    assert Tree.estimate(3, {root: 10}, {}, 10, 5).thresholds == {}
    assert Tree.estimate(3, {}, {root: CubeState(MAX_WEIGHT, 99)}, 10, 5).thresholds == {}
    assert Tree.estimate(3, {root: 1}, {root: CubeState(MAX_WEIGHT, 99)}, 10, 5).thresholds.keys() == {root}


def test_appends_only_lower_thresholds() -> None:
    """Over several appends inner cubes stay inner, thresholds fall, and expected sizes stay sensible."""
    states: dict[CubeId, CubeState] = {}
    everything: list[Row] = []
    before: Tree | None = None
    for step in range(5):
        rows = rows_of(step, 8_000, 1.0 + step / 2)
        tree = Tree.estimate(2, counts_of(rows), states, 500, DEPTH)
        assert_thresholds_rise(tree)
        if before is not None:
            for cube, threshold in before.thresholds.items():
                assert tree.thresholds[cube] <= threshold
        for cube, state in states_of(tree, rows).items():
            old = states.get(cube, CubeState(MAX_WEIGHT, 0))
            states[cube] = CubeState(min(old.max_weight, state.max_weight), old.element_count + state.element_count)
        everything += rows
        before = Tree.current(2, states)
    assert sum(state.element_count for state in states.values()) == len(everything)
    root = CubeId.root(2)
    assert before is not None
    assert fraction_of(before.thresholds[root]) == pytest.approx(500 / 40_000, rel=0.01)


def test_an_existing_tree_estimates_like_one_write() -> None:
    """Adding the second half to the first gives about the root and first level of the whole."""
    rows = rows_of(7, 40_000, 1.0)
    first, second = rows[:20_000], rows[20_000:]
    half = Tree.estimate(2, counts_of(first), {}, 1000, DEPTH)
    both = Tree.estimate(2, counts_of(second), states_of(half, first), 1000, DEPTH)
    whole = Tree.estimate(2, counts_of(rows), {}, 1000, DEPTH)
    for cube in (CubeId.root(2), *(CubeId(2, (code,)) for code in range(4))):
        assert fraction_of(both.threshold(cube)) == pytest.approx(fraction_of(whole.threshold(cube)), rel=0.1)


def test_a_split_leaf_shares_its_old_rows() -> None:
    """Old rows of a leaf count for its children as the new ones lie."""
    root, left = CubeId.root(1), CubeId(1, (0,))
    right = CubeId(1, (1,))
    counts = {root: 1000, left: 750, right: 250}
    tree = Tree.estimate(1, counts, {root: CubeState(MAX_WEIGHT, 1000)}, 100, 5)
    assert fraction_of(tree.threshold(root)) == pytest.approx(0.05)
    assert fraction_of(tree.threshold(left)) == pytest.approx(0.05 + 100 / 1500)
    assert fraction_of(tree.threshold(right)) == pytest.approx(0.05 + 100 / 500)


def test_current_with_missing_cubes() -> None:
    """A missing cube takes nothing and stays walkable; what lies below a leaf is left out."""
    child, grandchild = CubeId(2, (1,)), CubeId(2, (1, 2))
    root = CubeId.root(2)
    no_root = Tree.current(2, {grandchild: CubeState(50, 10)})
    assert dict(no_root.thresholds) == {root: MIN_WEIGHT, child: MIN_WEIGHT, grandchild: 50}
    missing = Tree.current(2, {root: CubeState(-9, 1), grandchild: CubeState(MAX_WEIGHT, 1)})
    assert dict(missing.thresholds) == {root: -9, child: -9}
    point = (0.3, 0.9)
    assert grandchild.parent == CubeId.of_point(point, 1)
    assert missing.cube_of(point, -9) == root
    assert missing.cube_of(point, -8).depth == 2
    leaf = Tree.current(2, {root: CubeState(3, 1), child: CubeState(MAX_WEIGHT, 1), grandchild: CubeState(50, 1)})
    assert dict(leaf.thresholds) == {root: 3}
    assert Tree.current(2, {}).thresholds == {}


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Draw a small tree with rising thresholds."""
    dimensions = draw(st.integers(1, 3))
    thresholds: dict[CubeId, int] = {}
    frontier = [(CubeId.root(dimensions), MIN_WEIGHT)]
    for _ in range(draw(st.integers(0, 12))):
        cube, above = frontier.pop(draw(st.integers(0, len(frontier) - 1)))
        thresholds[cube] = draw(st.integers(above, MAX_WEIGHT - 1))
        frontier += [(cube.child(code), thresholds[cube]) for code in range(1 << dimensions)]
    return Tree(dimensions, thresholds)


@given(trees(), st.lists(st.tuples(*[st.floats(0.0, 1.0)] * 3, st.integers(MIN_WEIGHT, MAX_WEIGHT)), min_size=1))
def test_ordinals_agree_with_the_tree(tree: Tree, drawn: list[tuple[float, float, float, int]]) -> None:
    """A walk over the tables ends at the ordinal of the tree's cube, whose weight range holds the weight."""
    table = tree.ordinals()
    inner_children = dict(zip(table.child_keys, table.child_nodes, strict=True))
    assert list(table.inner) == sorted(tree.thresholds)
    assert table.child_keys == sorted(set(table.child_keys))
    assert sorted(table.child_nodes) == list(range(1, len(table.inner)))
    for *point, weight in drawn:
        coordinates = point[: tree.dimensions]
        cube = tree.cube_of(coordinates, weight)
        assert cube.contains(coordinates)
        taken = tree.weight_range(cube)
        assert taken.first <= weight <= taken.last
        codes = iter(CubeId.of_point(coordinates, 15).path)
        node = 0
        while node < len(table.inner) and weight > table.thresholds[node]:
            key = node << tree.dimensions | next(codes)
            node = inner_children.get(key, len(table.inner) + key)
        assert table.ordinal_of(cube) == node
        assert table.cube_of(node) == cube


@given(trees())
def test_every_ordinal_round_trips(tree: Tree) -> None:
    """Inner cubes and their leaf children all have an ordinal of their own; others have none."""
    table = tree.ordinals()
    leaves = {cube.child(code) for cube in table.inner for code in range(1 << tree.dimensions)} - set(table.inner)
    cubes = {*table.inner, *leaves} or {CubeId.root(tree.dimensions)}
    assert len({table.ordinal_of(cube) for cube in cubes}) == len(cubes)
    for cube in cubes:
        assert table.cube_of(table.ordinal_of(cube)) == cube
    with pytest.raises(KeyError):
        table.ordinal_of(max(cubes, key=lambda cube: cube.depth).child(0).child(0))
    for ordinal in (-1, len(table.inner) * (1 + (1 << tree.dimensions)) + 1):
        with pytest.raises(KeyError):
            table.cube_of(ordinal)


def test_ranges_and_refusals() -> None:
    """Weight ranges follow the ancestors; trees that cannot be walked are refused."""
    root, child = CubeId.root(1), CubeId(1, (1,))
    tree = Tree(1, {root: -5, child: 8})
    assert tree.weight_range(root) == WeightRange(MIN_WEIGHT, -5)
    assert tree.weight_range(child) == WeightRange(-4, 8)
    assert tree.weight_range(child.child(0)) == WeightRange(9, MAX_WEIGHT)
    assert tree.weight_range(CubeId(1, (0,))) == WeightRange(-4, MAX_WEIGHT)
    for thresholds, named in (
        ({child: 3}, "below a leaf"),
        ({root: MAX_WEIGHT}, "threshold"),
        ({CubeId.root(2): 3}, "dim"),
    ):
        with pytest.raises(ValueError, match=named):
            Tree(1, thresholds)
