"""Mappings of cubes that are kept by the cubes' texts: a tree may have 200,000 of them."""

from collections.abc import Iterator, Mapping, ValuesView
from functools import cached_property
from typing import TypeVar

from otree.cube import CubeId, symbols_per_level
from otree.nodes import Nodes

V = TypeVar("V")


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
