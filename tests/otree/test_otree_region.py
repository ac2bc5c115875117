"""Unions of boxes: whatever lies in a box lies in the region, however few boxes it keeps."""

import random

import pytest

from otree.region import MOST_BOXES, Box, Region
from otree.weight import MAX_WEIGHT, MIN_WEIGHT


def _random_box(numbers):
    sides = tuple(tuple(sorted((numbers.random(), numbers.random()))) for _ in range(2))
    first, last = sorted(numbers.randint(MIN_WEIGHT, MAX_WEIGHT) for _ in range(2))
    return Box(sides, first, last)


@pytest.mark.parametrize("seed", range(5))
def test_every_box_lies_in_one_box_of_the_region(seed):
    numbers = random.Random(seed)
    boxes = [_random_box(numbers) for _ in range(3 * MOST_BOXES)]
    region = Region.of(boxes)
    assert len(region.boxes) <= MOST_BOXES
    assert all(any(kept.contains(box) for kept in region.boxes) for box in boxes)


@pytest.mark.parametrize("seed", range(5))
def test_the_intersection_holds_what_two_boxes_share(seed):
    numbers = random.Random(seed)
    mine, theirs = ([_random_box(numbers) for _ in range(4)] for _ in range(2))
    both = Region.of(mine).meet(Region.of(theirs))
    for a in mine:
        for b in theirs:
            shared = a.meet(b)
            assert shared.is_empty or any(kept.contains(shared) for kept in both.boxes)
