"""Regions of an index space: unions of boxes of coordinates and weights that may contain the rows of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from otree.weight import MAX_WEIGHT, MIN_WEIGHT

MOST_BOXES = 64
"""Maximum number of boxes of a region. More boxes are joined with neighbours, which bounds the time per file."""

Interval = tuple[float, float]
"""A closed interval of coordinates."""


@dataclass(frozen=True)
class Box:
    """The points whose weight and coordinates are in closed intervals.

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
        """Whether the box contains no point."""
        return self.first_weight > self.last_weight or any(low > high for low, high in self.sides)

    def contains(self, other: Box) -> bool:
        """Return whether this box contains all points of the other one."""
        return (
            self.first_weight <= other.first_weight
            and other.last_weight <= self.last_weight
            and all(a[0] <= b[0] and b[1] <= a[1] for a, b in zip(self.sides, other.sides, strict=True))
        )

    def distance(self, other: Box) -> float:
        """Return the widest gap between the two boxes in any dimension; the weight is scaled to 0 to 1."""
        sides = zip(self.sides, other.sides, strict=True)
        weights = max(other.first_weight - self.last_weight, self.first_weight - other.last_weight)
        gaps = [max(b[0] - a[1], a[0] - b[1]) for a, b in sides]
        return max(0.0, weights / (MAX_WEIGHT - MIN_WEIGHT), *gaps)

    def meet(self, other: Box) -> Box:
        """Return the points in both."""
        sides = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(self.sides, other.sides, strict=True))
        return Box(sides, max(self.first_weight, other.first_weight), min(self.last_weight, other.last_weight))

    def hull(self, other: Box) -> Box:
        """Return the smallest box that contains both."""
        sides = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(self.sides, other.sides, strict=True))
        return Box(sides, min(self.first_weight, other.first_weight), max(self.last_weight, other.last_weight))


@dataclass(frozen=True)
class Region:
    """A union of boxes; without boxes it is empty.

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
        """Return a region that contains these boxes, and slightly more if there are too many."""
        left: list[Box] = []
        for box in sorted({box for box in boxes if not box.is_empty}, key=_place):
            if not left or not left[-1].contains(box):
                left.append(box)
        return cls(tuple(left if len(left) <= MOST_BOXES else _hulls(left)))

    @classmethod
    def union(cls, regions: Sequence[Region]) -> Region:
        """Return a region that contains the points of all regions, in one step."""
        whole = next((region for region in regions if region.is_all), None)
        return whole or cls.of([box for region in regions for box in region.boxes])

    @classmethod
    def intersection(cls, regions: Sequence[Region], dimensions: int, most_pairs: int) -> tuple[Region, int]:
        """Return a region that contains the common points of all regions, and the number of compared pairs of boxes.

        Args:
            regions: The regions, in any number.
            dimensions: Of the space; without regions the result is the whole space.
            most_pairs: Pairs of boxes to compare; those with the most boxes no longer narrow the result beyond it.
        """
        narrow = sorted((region for region in regions if not region.is_all), key=lambda region: len(region.boxes))
        intersection, pairs = (narrow[0] if narrow else cls.all(dimensions)), 0
        for region in narrow[1:]:
            more = len(intersection.boxes) * len(region.boxes)
            if pairs + more > most_pairs:
                break
            intersection, pairs = intersection.meet(region), pairs + more
        return intersection, pairs

    @property
    def is_all(self) -> bool:
        """Whether the region is known to contain every point."""
        return any(
            box.first_weight == MIN_WEIGHT
            and box.last_weight == MAX_WEIGHT
            and all(low <= 0.0 and high >= 1.0 for low, high in box.sides)
            for box in self.boxes
        )

    def meet(self, other: Region) -> Region:
        """Return a region that contains the common points of both."""
        return Region.of([mine.meet(theirs) for mine in self.boxes for theirs in other.boxes])


def _hulls(boxes: Sequence[Box]) -> list[Box]:
    """Return ``MOST_BOXES`` boxes around runs of neighbours, separated by the widest gaps."""
    by_gap = sorted(range(1, len(boxes)), key=lambda i: boxes[i - 1].distance(boxes[i]))
    starts = sorted([0, *by_gap[len(by_gap) - MOST_BOXES + 1 :]])
    return [reduce(Box.hull, boxes[start:end]) for start, end in zip(starts, [*starts[1:], len(boxes)], strict=True)]


def _place(box: Box) -> tuple[tuple[Interval, ...], int, int]:
    return box.sides, box.first_weight, box.last_weight
