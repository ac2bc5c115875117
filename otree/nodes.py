"""Cubes of one tree in arrays, so that NumPy computes a level at a time."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Nodes:
    """Cubes and all their ancestors, by depth.

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
