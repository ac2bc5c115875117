"""The tree of cubes: which cube a row of a given point and weight goes to."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from otree.cube import CubeId, codes_of_point, preorder_key
from otree.cube_map import CubeMap
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

_NO_BLOCKS = MIN_WEIGHT - 1


class CubeState(NamedTuple):
    """The state of a cube according to its live blocks.

    Attributes:
        max_weight: Smallest threshold among its blocks; MAX_WEIGHT for a leaf.
        element_count: Rows of all its blocks.
    """

    max_weight: int
    element_count: int


@dataclass(frozen=True)
class Tree:
    """Thresholds of the inner cubes: a row goes to the first cube on its path whose threshold reaches its weight.

    Attributes:
        dimensions: Number of indexed columns.
        thresholds: Weight threshold of each inner cube, below MAX_WEIGHT. The parent of an inner cube is inner. Every
            other cube is a leaf, or lies below one.

    Source:
        Index format, section 6 (weights).
    """

    dimensions: int
    thresholds: Mapping[CubeId, int]

    def __post_init__(self) -> None:
        """Refuse thresholds that form no tree.

        Raises:
            ValueError: If an inner cube's parent is not inner, a threshold is out of range, or dimensions differ.
        """
        thresholds = CubeMap.of(self.dimensions, self.thresholds)
        object.__setattr__(self, "thresholds", thresholds)
        inner, width = thresholds.by_text, thresholds.width
        for text, threshold in inner.items():
            if not MIN_WEIGHT <= threshold < MAX_WEIGHT:
                raise ValueError(f"Inner cube '{text}' has threshold {threshold}")
            if text and text[:-width] not in inner:
                raise ValueError(f"Inner cube '{text}' lies below a leaf")

    @property
    def inner(self) -> CubeMap[int]:
        """The thresholds, for code that looks at every cube."""
        assert isinstance(self.thresholds, CubeMap)
        return self.thresholds

    def threshold(self, cube: CubeId) -> int:
        """Return the largest weight a cube takes; MAX_WEIGHT when it is not inner."""
        return self.thresholds.get(cube, MAX_WEIGHT)

    def cube_of(self, coordinates: Sequence[float], weight: int) -> CubeId:
        """Return the cube a row goes to.

        Args:
            coordinates: The row's point, one coordinate in [0, 1] per dimension.
            weight: The row's weight.

        Returns:
            The first cube on the path from the root whose threshold is at least the weight.
        """
        cube = CubeId.root(self.dimensions)
        codes = codes_of_point(coordinates)
        while weight > self.threshold(cube):
            cube = cube.child(next(codes))
        return cube

    def ordinals(self) -> "OrdinalTable":
        """Return the tree as dense tables, for evaluation row by row."""
        return self._ordinals

    @cached_property
    def _ordinals(self) -> "OrdinalTable":
        thresholds, width = self.inner.by_text, self.inner.width
        inner = tuple(sorted(thresholds, key=preorder_key))
        position = {text: ordinal for ordinal, text in enumerate(inner)}
        codes = {text[-width:]: 0 for text in inner if text}
        codes = {symbols: CubeId.parse(symbols, self.dimensions).path[0] for symbols in codes}
        # Pre-order visits children by parent only within a subtree, so the keys still need sorting.
        children = sorted(
            (position[text[:-width]] << self.dimensions | codes[text[-width:]], ordinal)
            for ordinal, text in enumerate(inner)
            if text
        )
        return OrdinalTable(
            dimensions=self.dimensions,
            inner_texts=inner,
            thresholds=[thresholds[text] for text in inner],
            child_keys=[key for key, _ in children],
            child_nodes=[ordinal for _, ordinal in children],
        )

    @classmethod
    def current(cls, dimensions: int, states: Mapping[CubeId, CubeState]) -> "Tree":
        """Return the tree that live blocks describe.

        A cube without blocks that has descendants with blocks gets its parent's threshold, so that it takes nothing
        and the way down stays open. What lies below a leaf cannot be reached and is left out.

        Args:
            dimensions: Number of indexed columns.
            states: State of every cube that has live blocks.

        Returns:
            The tree.
        """
        live = CubeMap.of(dimensions, states)
        if not live:
            return cls(dimensions, {})
        nodes = live.nodes
        stated = np.full(len(nodes), _NO_BLOCKS, np.int64)
        stated[nodes.places(live.by_text)] = [state.max_weight for state in live.by_text.values()]
        thresholds = np.full(len(nodes), MAX_WEIGHT, np.int64)
        for depth in range(nodes.depths):
            level = nodes.level(depth)
            above = thresholds[nodes.parent[level]] if depth else np.full(1, MIN_WEIGHT)
            own = np.where(stated[level] == _NO_BLOCKS, above, stated[level])
            thresholds[level] = np.where(above < MAX_WEIGHT, own, MAX_WEIGHT)
        return cls(dimensions, CubeMap(dimensions, nodes.below(thresholds, MAX_WEIGHT)))


@dataclass(frozen=True)
class OrdinalTable:
    """A tree as dense tables.

    The ordinal of inner cube i is i; that of the leaf child with some code of inner cube i is
    len(inner) + ((i << dimensions) | code). A tree without inner cubes has the root as its only leaf, ordinal 0.

    Attributes:
        dimensions: Number of indexed columns.
        inner_texts: Texts of the inner cubes in pre-order, the root first.
        thresholds: Weight threshold per inner cube.
        child_keys: (parent ordinal << dimensions) | code of every inner cube but the root, ascending.
        child_nodes: Ordinals of these cubes, in the order of `child_keys`.
    """

    dimensions: int
    inner_texts: tuple[str, ...]
    thresholds: list[int]
    child_keys: list[int]
    child_nodes: list[int]

    def cube(self, ordinal: int) -> tuple[str, int]:
        """Return the text of an ordinal's cube, and the largest weight that the cube takes.

        Raises:
            KeyError: If no inner cube or leaf has the ordinal.
        """
        size = len(self.inner_texts)
        if 0 <= ordinal < size:
            return self.inner_texts[ordinal], self.thresholds[ordinal]
        if size == 0 and ordinal == 0:
            return "", MAX_WEIGHT
        key = ordinal - size
        parent = key >> self.dimensions
        place = bisect_left(self.child_keys, key)
        is_inner = place < len(self.child_keys) and self.child_keys[place] == key
        if not 0 <= parent < size or is_inner:
            raise KeyError(f"Ordinal {ordinal} is not in the tree")
        return self.inner_texts[parent] + _symbols(key & (1 << self.dimensions) - 1, self.dimensions), MAX_WEIGHT


@lru_cache(4096)
def _symbols(code: int, dimensions: int) -> str:
    """What a child's text adds to that of its parent; kept, because each block of a leaf needs it."""
    return CubeId(dimensions, (code,)).text
