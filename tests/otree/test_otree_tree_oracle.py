"""Trees and their growth against plain recursion over paths, which shares no code with them."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from otree.cube import CubeId
from otree.growth import PlacedRows, grow
from otree.tree import CubeState, Tree

LEAST, MOST = -(2**31), 2**31 - 1
DEPTH, SLACK = 4, 1.25

Path = tuple[int, ...]
States = dict[Path, tuple[int, int]]
Row = tuple[Path, int]
"""Path of the cell, and weight."""


def current_tree(states: States, dimensions: int) -> dict[Path, int]:
    """Return the thresholds that blocks describe."""
    found: dict[Path, int] = {}

    def visit(path: Path, above: int) -> None:
        if not any(other[: len(path)] == path for other in states):
            return
        threshold = states[path][0] if path in states else above
        if threshold < MOST:
            found[path] = threshold
            for code in range(2**dimensions):
                visit((*path, code), threshold)

    visit((), LEAST)
    return found


def path_of(cell: int, dimensions: int) -> Path:
    """Return the digits of a cell's number."""
    return tuple(cell >> dimensions * level & 2**dimensions - 1 for level in reversed(range(DEPTH)))


def share(weight: int) -> float:
    """Return the share of weights up to one."""
    return max((weight + 2147483648.0) / 4294967295.0, 0.0)


def grown_tree(
    current: dict[Path, int],
    states: States,
    rows: list[Row],
    scale: float,
    desired: int,
    dimensions: int,
    everywhere: bool,
) -> dict[Path, int]:
    """Return the thresholds that rows join."""
    grown: dict[Path, int] = {}

    def visit(path: Path, reaching: list[Row], above: int) -> None:
        below_leaf = path != () and path[:-1] not in current
        start = share(current[path[:-1]]) if path and not below_leaf else 0.0
        subtree = sum(count for other, (_, count) in states.items() if other[: len(path)] == path)
        density = 0.0 if below_leaf else subtree / max(1.0 - start, 2.0**-32)
        own = states[path][1] if path in states and not below_leaf else 0
        old = MOST if below_leaf else current.get(path, MOST)
        even = density * max(share(old) - share(above), 0.0)
        known = even if old == MOST else min(float(own), even)
        held = scale * sum(weight <= old for _, weight in reaching) + known
        new = old
        may_change = (reaching or everywhere) and len(path) < DEPTH
        if may_change and held > (desired * SLACK if path in states else desired):
            span = share(old) - share(above)
            new = min(limit(reaching, scale, known / span if span > 0 else 0.0, share(above)), old, MOST - 1)
        if new == MOST:
            return
        grown[path] = max(new, above, LEAST)
        for code in range(2**dimensions):
            child = (*path, code)
            deeper = [row for row in reaching if row[1] > grown[path] and row[0][: len(child)] == child]
            is_known = child in current or (everywhere and child in states)
            if deeper or is_known:
                visit(child, deeper, grown[path])

    def limit(reaching: list[Row], scale: float, density: float, start: float) -> int:
        weights = sorted(weight for _, weight in reaching)
        held = [scale * (i + 1) + density * ((w + 2147483648) / 4294967295 - start) for i, w in enumerate(weights)]
        reached = next((i for i, sum_so_far in enumerate(held) if sum_so_far >= desired), len(held))
        by_rows = weights[reached] if reached < len(weights) else MOST
        if density <= 0:
            return by_rows
        by_share = (start + (desired - scale * reached) / density) * 4294967295.0 - 2147483648.0
        return min(by_rows, math.trunc(min(max(by_share, LEAST), MOST)))

    visit((), rows, LEAST - 1)
    return grown


@st.composite
def blocks(draw: st.DrawFn) -> tuple[int, States]:
    """Draw dimensions, and states of cubes of which some have no parent with blocks."""
    dimensions = draw(st.sampled_from([1, 2, 3, 7]))
    codes = st.integers(0, min(2**dimensions, 4) - 1) | st.just(2**dimensions - 1)
    paths = draw(st.lists(st.lists(codes, max_size=DEPTH + 1).map(tuple), max_size=12))
    with_parents = {path[:depth] for path in paths for depth in range(len(path) + 1)}
    threshold = st.just(MOST) | st.integers(LEAST, MOST)
    state = st.none() | st.tuples(threshold, st.integers(0, 300))
    drawn = {path: draw(state) for path in sorted(with_parents)}
    return dimensions, {path: found for path, found in drawn.items() if found is not None}


def by_cube(states: States, dimensions: int) -> dict[CubeId, CubeState]:
    """Return states as the product has them."""
    return {CubeId(dimensions, path): CubeState(*state) for path, state in states.items()}


def by_path(tree: Tree) -> dict[Path, int]:
    """Return thresholds as the oracle has them."""
    return {cube.path: threshold for cube, threshold in tree.thresholds.items()}


@given(blocks(), st.data(), st.sampled_from([1, 10, 100]), st.sampled_from([1.0, 3.0]), st.booleans())
@settings(deadline=None)
def test_trees_are_those_of_the_oracle(
    drawn: tuple[int, States], data: st.DataObject, desired: int, scale: float, everywhere: bool
) -> None:
    """The current tree, and the grown tree, also without the blocks of some files."""
    dimensions, states = drawn
    current = current_tree(states, dimensions)
    tree = Tree.current(dimensions, by_cube(states, dimensions))
    assert by_path(tree) == current
    cells = data.draw(st.lists(st.integers(0, 2 ** (dimensions * DEPTH) - 1), max_size=30))
    weights = [data.draw(st.integers(LEAST, MOST)) for _ in cells]
    remaining = {path: state for path, state in states.items() if data.draw(st.integers(0, 3))}
    placed = PlacedRows(np.array(weights, np.int32), np.array(cells, np.int64), DEPTH, scale)
    rows = [(path_of(cell, dimensions), weight) for cell, weight in zip(cells, weights, strict=True)]
    grown = grow(tree, by_cube(remaining, dimensions), placed, desired, SLACK, everywhere=everywhere)
    assert by_path(grown) == grown_tree(current, remaining, rows, scale, desired, dimensions, everywhere)
