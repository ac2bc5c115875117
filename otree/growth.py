"""Growth of a tree: thresholds fall and leaves are split where cubes would hold more than the desired rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from otree.cube import CubeId
from otree.tree import CubeState, Tree, subtree_counts
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, fraction_of, weight_of

# Cubes may grow by this factor before a write lowers their threshold or splits them: each lowered threshold leaves
# rows above it in older blocks, so small growth is not worth one.
GROWTH_SLACK = 1.25
# A cell has to fit a long.
CELL_BITS = 60
_SMALLEST_SHARE = 2.0**-32


@dataclass(frozen=True, eq=False)
class PlacedRows:
    """Weights and cells of rows that join a tree, or of a random sample of them.

    Attributes:
        weights: Weight per row.
        cells: Cell per row, `depth` levels of one bit per dimension, the first level highest.
        depth: Levels of the cells; no leaf is split below.
        scale: Rows per row of the sample, at least 1.
    """

    weights: NDArray[np.int32]
    cells: NDArray[np.int64]
    depth: int
    scale: float = 1.0


def no_rows(dimensions: int) -> PlacedRows:
    """Return no rows, for growth that is judged by existing rows alone."""
    return PlacedRows(np.empty(0, np.int32), np.empty(0, np.int64), CELL_BITS // dimensions)


def grow(
    current: Tree,
    existing: Mapping[CubeId, CubeState],
    rows: PlacedRows,
    desired: int,
    slack: float = GROWTH_SLACK,
    *,
    everywhere: bool = False,
) -> Tree:
    """Return the tree that rows join, in which each inner cube would hold the desired number of rows.

    The weights of the rows are counted as they are, so equal weights are taken into account. The weights of existing
    rows are not known; they are taken to be spread evenly. Where a leaf is split, its existing rows stay in their
    blocks, and the children are judged by the new rows alone.

    Args:
        current: The tree that all live blocks describe, those of files that the rows come from among them.
        existing: State of every cube that has live blocks of other rows than those.
        rows: The rows.
        desired: Rows that an inner cube should hold.
        slack: Cubes of the current tree stay as they are until they would hold more than this multiple.
        everywhere: Cubes that get none of the rows grow too, if their existing rows require it. Otherwise
            they stay as they are.

    Returns:
        The tree. Inner cubes of the current tree stay inner and their thresholds only fall; a threshold is never below
        that of the parent.

    Raises:
        ValueError: If the desired number is not positive.
    """
    if desired < 1:
        raise ValueError(f"A cube should hold at least one row, got {desired}")
    dimensions = current.dimensions
    order = np.argsort(rows.cells, kind="stable")
    cells, weights = rows.cells[order], rows.weights[order]
    subtrees = subtree_counts(existing)
    known = _children({**dict.fromkeys(current.thresholds), **(dict.fromkeys(existing) if everywhere else {})})
    thresholds: dict[CubeId, int] = {}
    waiting = [(CubeId.root(dimensions), np.arange(len(cells)), MIN_WEIGHT - 1)]
    while waiting:
        cube, reaching, above = waiting.pop()
        of_cube = weights[reaching]
        state = _cube(cube, current, existing, subtrees)
        allowed = desired * slack if cube in existing else desired
        threshold = state.threshold if state.threshold < MAX_WEIGHT else None
        may_change = (len(of_cube) > 0 or everywhere) and cube.depth < rows.depth
        if may_change and _expected(state, of_cube, rows.scale, above) > allowed:
            threshold = min(_threshold(state, of_cube, rows.scale, above, desired), state.threshold, MAX_WEIGHT - 1)
        if threshold is None:
            continue
        thresholds[cube] = max(threshold, above, MIN_WEIGHT)
        below = reaching[of_cube > thresholds[cube]]
        parts = _split(below, cells, rows.depth - cube.depth - 1, dimensions)
        for code in known.get(cube.path, set()) - parts.keys():
            parts[code] = below[:0]
        waiting += [(cube.child(code), part, thresholds[cube]) for code, part in parts.items()]
    return Tree(dimensions, thresholds)


@dataclass(frozen=True)
class _Cube:
    """Facts about the existing rows of a cube.

    Attributes:
        threshold: Its current threshold, MAX_WEIGHT for a leaf.
        rows: Rows in its own blocks.
        density: Rows in it and below it, scaled to all weights.
    """

    threshold: int
    rows: int
    density: float

    def up_to(self, threshold: int, above: int) -> float:
        """Return how many existing rows have weights in (above, threshold], at most the current threshold."""
        even = self.density * max(_share(threshold) - _share(above), 0.0)
        # All rows in deeper cubes lie above the current threshold.
        return even if self.threshold == MAX_WEIGHT else min(float(self.rows), even)


def _cube(cube: CubeId, current: Tree, existing: Mapping[CubeId, CubeState], subtrees: Mapping[CubeId, int]) -> _Cube:
    parent = cube.parent
    if parent is not None and parent not in current.thresholds:
        return _Cube(MAX_WEIGHT, 0, 0.0)
    start = 0.0 if parent is None else fraction_of(current.thresholds[parent])
    rows = existing[cube].element_count if cube in existing else 0
    density = subtrees.get(cube, 0) / max(1.0 - start, _SMALLEST_SHARE)
    return _Cube(current.threshold(cube), rows, density)


def _expected(cube: _Cube, weights: NDArray[np.int32], scale: float, above: int) -> float:
    """Return how many rows the cube would hold with its current threshold; `weights` are those above `above`."""
    return scale * np.count_nonzero(weights <= cube.threshold) + cube.up_to(cube.threshold, above)


def _threshold(cube: _Cube, weights: NDArray[np.int32], scale: float, above: int, desired: int) -> int:
    """Return the threshold up to which new and existing rows are the desired number."""
    start = _share(above)
    span = _share(cube.threshold) - start
    density = cube.up_to(cube.threshold, above) / span if span > 0.0 else 0.0
    ordered = np.sort(weights)
    shares = (ordered.astype(np.float64) - MIN_WEIGHT) / (MAX_WEIGHT - MIN_WEIGHT)
    held = scale * np.arange(1, len(ordered) + 1) + density * (shares - start)
    reached = int(np.searchsorted(held, desired, side="left"))
    limit = int(ordered[reached]) if reached < len(ordered) else MAX_WEIGHT
    if density <= 0.0:
        return limit
    return min(limit, weight_of(start + (desired - scale * reached) / density))


def _share(weight: int) -> float:
    return max(fraction_of(weight), 0.0)


def _split(
    rows: NDArray[np.intp], cells: NDArray[np.int64], levels: int, dimensions: int
) -> dict[int, NDArray[np.intp]]:
    """Return the rows of each child; `rows` are positions in cell order, `levels` the levels below the children."""
    if levels < 0 or not len(rows):
        return {}
    codes = (cells[rows] >> np.int64(dimensions * levels)) & np.int64((1 << dimensions) - 1)
    firsts = np.concatenate(([0], np.flatnonzero(np.diff(codes)) + 1, [len(codes)]))
    return {int(codes[i]): rows[i:j] for i, j in pairwise(firsts)}


def _children(cubes: Iterable[CubeId]) -> dict[tuple[int, ...], set[int]]:
    children: dict[tuple[int, ...], set[int]] = {}
    for cube in cubes:
        if cube.path:
            children.setdefault(cube.path[:-1], set()).add(cube.path[-1])
    return children
