"""Growth of a tree: thresholds fall and leaves are split where cubes would hold more than the desired rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from otree.cube import CubeId
from otree.cube_map import CubeMap, Nodes
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, OFFSET, SPAN, fraction_of

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
    states = CubeMap.of(dimensions, existing)
    order = np.argsort(rows.cells, kind="stable")
    cells, weights = rows.cells[order], rows.weights[order]
    nodes = states.nodes
    if not current.inner.by_text.keys() <= nodes.position.keys():
        nodes = Nodes.of([*current.inner.by_text, *states.by_text], states.width)
    cubes = _Cubes.of(nodes, current.inner.by_text, states.by_text)
    allowed = np.where(cubes.exists, desired * slack, desired)
    visited = (cubes.threshold < MAX_WEIGHT) | (cubes.exists & everywhere)
    thresholds = np.full(len(nodes), MAX_WEIGHT, np.int64)
    of_new_cubes: dict[str, int] = {}
    reaching = _Reaching.root(len(cells))
    depth = 0
    while reaching.texts or depth < nodes.depths:
        level, may_change = nodes.level(depth), depth < rows.depth
        above = thresholds[nodes.parent[level]] if depth else np.full(1, MIN_WEIGHT - 1)
        # First as if no cube got rows.
        of_level = cubes.at(level)
        changes = everywhere and may_change
        lowered = _lowered(of_level, above, allowed[level], desired) if changes else of_level.threshold
        is_inner = (above < MAX_WEIGHT) & (visited[level] | (depth == 0)) & (lowered < MAX_WEIGHT)
        thresholds[level] = np.where(is_inner, _not_below(lowered, above), MAX_WEIGHT)
        # Then those that get some.
        numbers = np.array([nodes.position.get(text, -1) for text in reaching.texts], np.int64)
        getting, of_rows = cubes.at(numbers), weights[reaching.rows]
        lowered = getting.threshold
        if may_change:
            lowered = _lowered_by_rows(getting, reaching, of_rows, rows.scale, allowed[numbers], desired)
        lowered = np.where(lowered < MAX_WEIGHT, _not_below(lowered, reaching.above), MAX_WEIGHT)
        thresholds[numbers[numbers >= 0]] = lowered[numbers >= 0]
        of_new_cubes |= {
            reaching.texts[i]: int(lowered[i]) for i in np.flatnonzero((numbers < 0) & (lowered < MAX_WEIGHT))
        }
        reaching = reaching.below(of_rows, lowered, cells, rows.depth - depth - 1, dimensions)
        depth += 1
    return Tree(dimensions, CubeMap(dimensions, nodes.below(thresholds, MAX_WEIGHT) | of_new_cubes))


@dataclass(frozen=True, eq=False)
class _Reaching:
    """The rows that reach the cubes of one depth, in the order of their cells.

    Attributes:
        rows: Position of each row.
        cube: Number of the row's cube among `texts`.
        texts: The cubes that get rows.
        above: The threshold of each cube's parent.
    """

    rows: NDArray[np.int64]
    cube: NDArray[np.int64]
    texts: list[str]
    above: NDArray[np.int64]

    @classmethod
    def root(cls, count: int) -> "_Reaching":
        """Return all rows."""
        any_rows = min(count, 1)
        return cls(np.arange(count), np.zeros(count, np.int64), [""] * any_rows, np.full(any_rows, MIN_WEIGHT - 1))

    def below(
        self,
        weights: NDArray[np.int32],
        thresholds: NDArray[np.int64],
        cells: NDArray[np.int64],
        levels: int,
        dimensions: int,
    ) -> "_Reaching":
        """Return the rows above the thresholds of their cubes; `levels` is the number of levels below the children."""
        deeper = (weights > thresholds[self.cube]) & (levels >= 0)
        rows, parent = self.rows[deeper], self.cube[deeper]
        codes = (cells[rows] >> np.int64(dimensions * max(levels, 0))) & np.int64((1 << dimensions) - 1)
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = (parent[1:] != parent[:-1]) | (codes[1:] != codes[:-1])
        first = np.flatnonzero(is_first)
        symbols = {code: CubeId(dimensions, (code,)).text for code in set(codes[first].tolist())}
        texts = [
            self.texts[cube] + symbols[code]
            for cube, code in zip(parent[first].tolist(), codes[first].tolist(), strict=True)
        ]
        return _Reaching(rows, np.cumsum(is_first) - 1, texts, thresholds[parent[first]])


@dataclass(frozen=True, eq=False)
class _Cubes:
    """Facts about the existing rows of cubes: arrays with an entry per cube, or the numbers of one cube.

    The last entry is of all cubes that do not exist.

    Attributes:
        threshold: Its current threshold, MAX_WEIGHT for a leaf.
        rows: Rows in its own blocks.
        density: Rows in it and below it, scaled to all weights.
        exists: Whether it has blocks.
    """

    threshold: Any
    rows: Any
    density: Any
    exists: Any

    @classmethod
    def of(cls, nodes: Nodes, current: Mapping[str, int], existing: Mapping[str, CubeState]) -> "_Cubes":
        """Return the facts about all cubes, of which `current` has the thresholds and `existing` the blocks."""
        size = len(nodes) + 1
        threshold, exists = np.full(size, MAX_WEIGHT, np.int64), np.zeros(size, np.bool_)
        threshold[nodes.places(current)] = list(current.values())
        live, rows = nodes.places(existing), np.zeros(size, np.int64)
        rows[live], exists[live] = [state.element_count for state in existing.values()], True
        above = np.append(threshold[nodes.parent], MAX_WEIGHT)
        above[0] = MIN_WEIGHT
        density = np.append(nodes.totals(rows[:-1]), 0) / np.maximum(1.0 - _share(above), _SMALLEST_SHARE)
        is_below_leaf = above == MAX_WEIGHT
        return cls(threshold, np.where(is_below_leaf, 0, rows), np.where(is_below_leaf, 0.0, density), exists)

    def at(self, cubes: Any) -> "_Cubes":
        """Return the facts about the cubes at some positions."""
        return _Cubes(self.threshold[cubes], self.rows[cubes], self.density[cubes], self.exists[cubes])

    def held(self, above: Any) -> Any:
        """Return how many existing rows have weights in (above, threshold]."""
        even = self.density * np.maximum(_share(self.threshold) - _share(above), 0.0)
        # All rows in deeper cubes lie above the current threshold.
        return np.where(self.threshold == MAX_WEIGHT, even, np.minimum(self.rows, even))

    def density_from(self, above: Any) -> Any:
        """Return the existing rows in (above, threshold], scaled to all weights."""
        span = _share(self.threshold) - _share(above)
        return np.where(span > 0.0, self.held(above) / np.where(span > 0.0, span, 1.0), 0.0)

    def limit(self, above: Any, wanted: float) -> Any:
        """Return the weight up to which as many existing rows as wanted lie above `above`."""
        density = self.density_from(above)
        shares = _share(above) + wanted / np.where(density > 0.0, density, 1.0)
        return np.where(density > 0.0, _weights_of(shares), MAX_WEIGHT)


def _lowered(cubes: _Cubes, above: NDArray[np.int64], allowed: NDArray[np.float64], desired: int) -> NDArray[np.int64]:
    """Return the thresholds of cubes that get no rows, lower where they hold more than is allowed."""
    limit = np.minimum(np.minimum(cubes.limit(above, desired), cubes.threshold), MAX_WEIGHT - 1)
    threshold: NDArray[np.int64] = np.where(cubes.held(above) > allowed, limit, cubes.threshold)
    return threshold


def _lowered_by_rows(
    cubes: _Cubes,
    reaching: _Reaching,
    weights: NDArray[np.int32],
    scale: float,
    allowed: NDArray[np.float64],
    desired: int,
) -> NDArray[np.int64]:
    """Return the thresholds of the cubes that rows reach, lower where they would hold more than is allowed."""
    lowered: NDArray[np.int64] = cubes.threshold.copy()
    joining = np.bincount(reaching.cube[weights <= lowered[reaching.cube]], minlength=len(lowered))
    exceeding = np.flatnonzero(scale * joining + cubes.held(reaching.above) > allowed)
    first, end = (np.searchsorted(reaching.cube, exceeding, side=side) for side in ("left", "right"))
    for cube, i, j in zip(exceeding.tolist(), first.tolist(), end.tolist(), strict=True):
        limit = _threshold(cubes.at(cube), weights[i:j], scale, int(reaching.above[cube]), desired)
        lowered[cube] = min(limit, int(lowered[cube]), MAX_WEIGHT - 1)
    return lowered


def _threshold(cube: _Cubes, weights: NDArray[np.int32], scale: float, above: int, desired: int) -> int:
    """Return the threshold up to which new and existing rows are the desired number."""
    ordered = np.sort(weights)
    shares = (ordered.astype(np.float64) - MIN_WEIGHT) / (MAX_WEIGHT - MIN_WEIGHT)
    density = cube.density_from(above)
    held = scale * np.arange(1, len(ordered) + 1) + density * (shares - _share(above))
    reached = int(np.searchsorted(held, desired, side="left"))
    limit = int(ordered[reached]) if reached < len(ordered) else MAX_WEIGHT
    return min(limit, int(cube.limit(above, desired - scale * reached)))


def _share(weight: Any) -> Any:
    return np.maximum(fraction_of(weight), 0.0)


def _weights_of(fractions: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the weights that stand for fractions, as `weight_of` does; none is NaN."""
    return np.clip(fractions * SPAN - OFFSET, MIN_WEIGHT, MAX_WEIGHT).astype(np.int64)


def _not_below(thresholds: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return thresholds, none of which is below that of the cube's parent."""
    return np.maximum(np.maximum(thresholds, above), MIN_WEIGHT)
