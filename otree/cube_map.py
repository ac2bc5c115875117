"""Mappings of cubes that are kept by the cubes' texts: a tree may have 200,000 of them."""

from collections.abc import Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from otree.cube import CubeId, symbols_per_level

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Nodes:
    """Cubes of one tree and all their ancestors by depth, in arrays, so that NumPy computes a level at a time.

    Attributes:
        texts: The cubes as the format spells them, the root first.
        position: Position of each text.
        parent: Position of each cube's parent; -1 for the root.
        starts: Position of the first cube of each depth, and the number of cubes.
    """

    texts: list[str]
    position: dict[str, int]
    parent: NDArray[np.int64]
    starts: list[int]

    @classmethod
    def of(cls, texts: Iterable[str], width: int) -> "Nodes":
        """Return cubes with their ancestors, the root at least.

        Args:
            texts: The cubes as the format spells them.
            width: Number of symbols per level.
        """
        cubes = {*texts, ""}
        above = cubes
        while above:
            above = {text[:-width] for text in above} - cubes
            cubes |= above
        ordered = sorted(cubes, key=len)
        position = {text: number for number, text in enumerate(ordered)}
        parent = np.fromiter((position[text[:-width]] for text in ordered), np.int64, len(ordered))
        parent[0] = -1
        lengths = np.fromiter(map(len, ordered), np.int64, len(ordered))
        starts = np.searchsorted(lengths, np.arange(0, lengths[-1] + 2 * width, width)).tolist()
        return cls(ordered, position, parent, starts)

    def __len__(self) -> int:
        """Return the number of cubes."""
        return len(self.texts)

    def places(self, texts: Iterable[str]) -> list[int]:
        """Return the positions of some cubes."""
        return [self.position[text] for text in texts]

    @property
    def depths(self) -> int:
        """The number of levels, that of the root among them."""
        return len(self.starts) - 1

    def level(self, depth: int) -> slice:
        """Return the positions of the cubes of a depth; none below the deepest cube."""
        return slice(*self.starts[depth : depth + 2]) if depth < self.depths else slice(len(self), len(self))

    def below(self, values: NDArray[np.int64], bound: int) -> dict[str, int]:
        """Return the values of the cubes that are below a bound, by the texts of the cubes."""
        cubes = np.flatnonzero(values[: len(self)] < bound)
        return dict(zip((self.texts[cube] for cube in cubes.tolist()), values[cubes].tolist(), strict=True))

    def totals(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each cube the sum of the values of it and the cubes below it."""
        totals: NDArray[np.int64] = values.copy()
        for depth in range(self.depths - 1, 0, -1):
            np.add.at(totals, self.parent[self.level(depth)], totals[self.level(depth)])
        return totals


class CubeMap(Mapping[CubeId, V]):
    """Values of the cubes of one tree.

    Code that looks at every cube works on `by_text`: Python knows the hash of a text, and the parent of a cube is a
    prefix of it. A `CubeId` is made only for the cubes that a caller asks for.

    Attributes:
        dimensions: Number of indexed columns.
        by_text: The value of each cube, by the format's spelling of the cube.
        width: Number of symbols per level. The parent of a cube with a text is `text[:-width]`.
    """

    def __init__(self, dimensions: int, by_text: dict[str, V]) -> None:
        """Make a mapping of texts that are known to be cubes."""
        self.dimensions = dimensions
        self.by_text = by_text
        self.width = symbols_per_level(dimensions)

    @classmethod
    def of(cls, dimensions: int, values: Mapping[CubeId, V]) -> "CubeMap[V]":
        """Return a mapping as a `CubeMap`, the same one if it is one already.

        Raises:
            ValueError: If a cube has another number of dimensions.
        """
        if isinstance(values, CubeMap) and values.dimensions == dimensions:
            return values
        for cube in values:
            if cube.dimensions != dimensions:
                raise ValueError(f"Cube '{cube.text}' has {cube.dimensions} dimensions, the tree {dimensions}")
        return cls(dimensions, {cube.text: value for cube, value in values.items()})

    @cached_property
    def nodes(self) -> Nodes:
        """The cubes and their ancestors, in arrays."""
        return Nodes.of(self.by_text, self.width)

    def __getitem__(self, cube: CubeId) -> V:
        """Return the value of a cube."""
        if cube.dimensions != self.dimensions:
            raise KeyError(cube)
        return self.by_text[cube.text]

    def __iter__(self) -> Iterator[CubeId]:
        """Yield the cubes."""
        return (CubeId.parse(text, self.dimensions) for text in self.by_text)

    def __len__(self) -> int:
        """Return the number of cubes."""
        return len(self.by_text)

    def __repr__(self) -> str:
        """Return the values by texts."""
        return f"CubeMap({self.dimensions}, {self.by_text})"

    def values(self) -> ValuesView[V]:
        """Return the values, in the order of the cubes."""
        return self.by_text.values()
