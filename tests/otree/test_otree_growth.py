"""Growth of a tree by what its cubes would hold."""

import random
from collections import Counter

import numpy as np
import pytest

from otree.cube import CubeId
from otree.growth import PlacedRows, grow, no_rows
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, fraction_of, weight_of

ROOT = CubeId.root(1)
LEFT, RIGHT = ROOT.child(0), ROOT.child(1)
Row = tuple[tuple[float, float], int]
"""Point, and weight."""
DEPTH = 8


def even_rows(count: int, first: float = 0.0, last: float = 1.0, depth: int = 8, scale: float = 1.0) -> PlacedRows:
    """Make rows of evenly spread weights in a range of fractions, every second one in each half of the space."""
    weights = [weight_of(first + (last - first) * (i + 0.5) / count) for i in range(count)]
    cells = [(i % 2) << (depth - 1) | i // 2 % (1 << (depth - 1)) for i in range(count)]
    return PlacedRows(np.array(weights, np.int32), np.array(cells, np.int64), depth, scale)


def drawn_rows(seed: int, count: int, skew: float) -> list[Row]:
    """Draw random rows of two columns; a skew above 1 crowds them near 0."""
    source = random.Random(seed)
    return [
        ((source.random() ** skew, source.random() ** skew), source.randint(MIN_WEIGHT, MAX_WEIGHT))
        for _ in range(count)
    ]


def placed(rows: list[Row]) -> PlacedRows:
    """Return the rows as they join a tree."""
    paths = np.array([CubeId.of_point(point, DEPTH).path for point, _ in rows], np.int64)
    cells = sum(paths[:, level] << 2 * (DEPTH - level - 1) for level in range(DEPTH))
    return PlacedRows(np.array([weight for _, weight in rows], np.int32), cells, DEPTH)


def states_of(tree: Tree, rows: list[Row]) -> dict[CubeId, CubeState]:
    """Write the rows into blocks."""
    elements = Counter(tree.cube_of(point, weight) for point, weight in rows)
    return {cube: CubeState(tree.threshold(cube), count) for cube, count in elements.items()}


def assert_thresholds_rise(tree: Tree) -> None:
    """No inner cube's threshold is below its parent's."""
    for cube, limit in tree.thresholds.items():
        assert cube.parent is None or tree.thresholds[cube.parent] <= limit


def threshold(tree: Tree, cube: CubeId = ROOT) -> float:
    """Return a cube's threshold as a fraction."""
    return fraction_of(tree.threshold(cube))


def test_a_leaf_is_split_by_what_it_would_hold() -> None:
    """One row is enough where the leaf is full already; up to the slack it stays as it is."""
    current = Tree(1, {})
    for existing, expected in ((1200, 1.0), (1300, 1000 / 1301)):
        tree = grow(current, {ROOT: CubeState(MAX_WEIGHT, existing)}, even_rows(1), 1000)
        assert threshold(tree) == pytest.approx(expected, abs=0.001)
        assert tree.thresholds.keys() == ({ROOT} if expected < 1 else set())


def test_existing_rows_alone_split_a_leaf() -> None:
    """The rows of a small append are not known before they are written."""
    states = {ROOT: CubeState(weight_of(0.5), 1000), LEFT: CubeState(MAX_WEIGHT, 2000), RIGHT: CubeState(MAX_WEIGHT, 9)}
    current = Tree.current(1, states)
    assert grow(current, states, no_rows(1), 1000).thresholds == current.thresholds
    tree = grow(current, states, no_rows(1), 1000, everywhere=True)
    assert tree.thresholds.keys() == {ROOT, LEFT}
    # The root holds what it should; its left child holds twice that.
    assert threshold(tree) == pytest.approx(0.5)
    assert threshold(tree, LEFT) == pytest.approx(0.75)


def test_rows_in_deeper_cubes_do_not_lower_a_threshold() -> None:
    """A compaction of the root's rows alone keeps its threshold: the rows that stay all lie above it."""
    current = Tree(1, {ROOT: weight_of(0.1)})
    remaining = {LEFT: CubeState(MAX_WEIGHT, 1000), RIGHT: CubeState(MAX_WEIGHT, 1000)}
    tree = grow(current, remaining, even_rows(1000, 0.0, 0.1), 1000)
    assert tree.thresholds == current.thresholds


def test_a_threshold_falls_where_older_blocks_and_new_rows_exceed_it() -> None:
    """Twice the rows halve it."""
    states = {
        ROOT: CubeState(weight_of(0.5), 1000),
        LEFT: CubeState(MAX_WEIGHT, 500),
        RIGHT: CubeState(MAX_WEIGHT, 500),
    }
    tree = grow(Tree.current(1, states), states, even_rows(2000), 1000)
    assert threshold(tree) == pytest.approx(0.25, abs=0.001)
    sampled = grow(Tree.current(1, states), states, even_rows(500, scale=4.0), 1000)
    assert threshold(sampled) == pytest.approx(0.25, abs=0.001)


def test_equal_weights_stay_together() -> None:
    """A cube takes all rows of a weight; nothing is split for them below."""
    rows = PlacedRows(np.full(5000, 7, np.int32), np.zeros(5000, np.int64), 8)
    tree = grow(Tree(1, {}), {}, rows, 1000)
    assert dict(tree.thresholds) == {ROOT: 7}


def test_thresholds_never_decrease_on_the_way_down() -> None:
    """Whole files that were deleted may leave a child below its parent; new rows are placed as if it were not so."""
    current = Tree(1, {ROOT: 100, LEFT: 50})
    tree = grow(current, {ROOT: CubeState(100, 10), LEFT: CubeState(50, 10)}, even_rows(10), 1000)
    assert dict(tree.thresholds) == {ROOT: 100, LEFT: 100}


def test_no_leaf_is_split_below_the_cells() -> None:
    """Rows of one point are split down to the depth of their cells, and no further."""
    weights = np.linspace(MIN_WEIGHT, MAX_WEIGHT, 1000).astype(np.int32)
    tree = grow(Tree(2, {}), {}, PlacedRows(weights, np.zeros(1000, np.int64), 3), 10)
    assert sorted(cube.depth for cube in tree.thresholds) == [0, 1, 2]


@pytest.mark.parametrize("skew", [1.0, 4.0])
def test_inner_cubes_hold_the_desired_rows(skew: float) -> None:
    """Each inner cube of a new tree holds exactly the desired rows, and no leaf more."""
    rows, desired = drawn_rows(1, 20_000, skew), 400
    tree = grow(Tree(2, {}), {}, placed(rows), desired)
    assert len(tree.thresholds) > 5
    assert_thresholds_rise(tree)
    elements = Counter(tree.cube_of(point, weight) for point, weight in rows)
    assert {elements[cube] for cube in tree.thresholds} == {desired}
    assert max(count for cube, count in elements.items() if cube not in tree.thresholds) <= desired


def test_appends_only_lower_thresholds() -> None:
    """Over several appends inner cubes stay inner, thresholds fall, and the root holds what it should."""
    states: dict[CubeId, CubeState] = {}
    before = Tree(2, {})
    for step in range(5):
        rows = drawn_rows(step, 8_000, 1.0 + step / 2)
        tree = grow(before, states, placed(rows), 500, 1.0)
        assert_thresholds_rise(tree)
        for cube, limit in before.thresholds.items():
            assert tree.thresholds[cube] <= limit
        for cube, state in states_of(tree, rows).items():
            old = states.get(cube, CubeState(MAX_WEIGHT, 0))
            states[cube] = CubeState(min(old.max_weight, state.max_weight), old.element_count + state.element_count)
        before = Tree.current(2, states)
    assert sum(state.element_count for state in states.values()) == 40_000
    assert threshold(before, CubeId.root(2)) == pytest.approx(500 / 40_000, rel=0.1)


def test_refusals() -> None:
    """A cube of no rows is none."""
    with pytest.raises(ValueError, match="at least one row, got 0"):
        grow(Tree(1, {}), {}, no_rows(1), 0)
