"""Regions of an index space: unions of boxes of coordinates and weights that may hold the rows of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from otree.weight import MAX_WEIGHT, MIN_WEIGHT

MOST_BOXES = 64
"""Boxes that a region may have; beyond it neighbours are joined, so that a file is judged in bounded time."""

Interval = tuple[float, float]
"""A closed interval of coordinates."""


@dataclass(frozen=True)
class Box:
    """Points whose weight and coordinates lie in closed intervals.

    Attributes:
        sides: One interval of coordinates per dimension.
        first_weight: Smallest weight.
        last_weight: Largest weight.
    """

    sides: tuple[Interval, ...]
    first_weight: int = MIN_WEIGHT
    last_weight: int = MAX_WEIGHT

    @property
    def is_empty(self) -> bool:
        """Whether no point is inside."""
        return self.first_weight > self.last_weight or any(low > high for low, high in self.sides)

    def meet(self, other: Box) -> Box:
        """Return the points in both."""
        sides = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(self.sides, other.sides, strict=True))
        return Box(sides, max(self.first_weight, other.first_weight), min(self.last_weight, other.last_weight))

    def hull(self, other: Box) -> Box:
        """Return the smallest box that holds both."""
        sides = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(self.sides, other.sides, strict=True))
        return Box(sides, min(self.first_weight, other.first_weight), max(self.last_weight, other.last_weight))


@dataclass(frozen=True)
class Region:
    """A union of boxes; without boxes it holds nothing.

    Attributes:
        boxes: At most `MOST_BOXES` boxes, none of them empty.
    """

    boxes: tuple[Box, ...]

    @classmethod
    def all(cls, dimensions: int) -> Region:
        """Return the whole space."""
        return cls((Box(((0.0, 1.0),) * dimensions),))

    @classmethod
    def nothing(cls) -> Region:
        """Return the region without points."""
        return cls(())

    @classmethod
    def of(cls, boxes: Sequence[Box]) -> Region:
        """Return a region that holds these boxes, and a little more where they are too many."""
        # Neighbours in this order lie near each other in the first dimension that tells them apart.
        left = sorted({box for box in boxes if not box.is_empty}, key=_place)
        while len(left) > MOST_BOXES:
            pairs = [left[i].hull(left[i + 1]) for i in range(0, len(left) - 1, 2)]
            left = pairs + left[len(pairs) * 2 :]
        return cls(tuple(left))

    @property
    def is_all(self) -> bool:
        """Whether every point is known to be inside."""
        return any(
            box.first_weight == MIN_WEIGHT
            and box.last_weight == MAX_WEIGHT
            and all(low <= 0.0 and high >= 1.0 for low, high in box.sides)
            for box in self.boxes
        )

    def meet(self, other: Region) -> Region:
        """Return a region that holds the points in both."""
        return Region.of([mine.meet(theirs) for mine in self.boxes for theirs in other.boxes])

    def join(self, other: Region) -> Region:
        """Return a region that holds the points in either."""
        if self.is_all or other.is_all:
            return self if self.is_all else other
        return Region.of([*self.boxes, *other.boxes])


def _place(box: Box) -> tuple[tuple[Interval, ...], int, int]:
    return box.sides, box.first_weight, box.last_weight
