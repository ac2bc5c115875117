"""Histories of small appends for the simulation of clustering: when files arrive, where, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

MINUTE = 60_000
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
KB, MB = 1024, 1024**2
SIZES = (30 * KB, 300 * KB, 3 * MB)
REGIONS = 50
BUCKET = 2 * HOUR


@dataclass(frozen=True)
class Append:
    """Files that one commit adds.

    Attributes:
        at: when, in milliseconds.
        files: partition, bytes and latest event time of each file.
    """

    at: int
    files: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Case:
    """A kind of history.

    Attributes:
        story: ``steady``, ``bursty`` or ``late``.
        many: several partitions, where the story has them.
        size: median bytes of an appended file.
    """

    story: str
    many: bool
    size: int

    @property
    def name(self) -> str:
        """For the report."""
        partitions = "many partitions" if self.many else "1 partition"
        return f"{self.story}, {partitions}, {self.size // KB} KB"


CASES = tuple(Case(*values) for values in product(("steady", "bursty", "late"), (False, True), SIZES))


def appends(case: Case, count: int, seed: int = 1) -> list[Append]:
    """The history of a case.

    Steady: an append every two minutes. Bursty: per 20 hours, 200 appends of ten times the size within 33 minutes and
    400 others. Late: every fifth append has rows of a uniformly distributed earlier time; its files are small.
    Several partitions are 50 regions of which each append has three, the larger ones more often, or two hours each of
    the event time where rows arrive late; a late append then has files in three of them.

    Args:
        case: its kind.
        count: how many appends.
        seed: of the random values.
    """
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, REGIONS + 1)
    weights /= weights.sum()
    history: list[Append] = []
    at = 0
    for number in range(count):
        in_burst = case.story == "bursty" and number % 600 >= 400
        at += 10_000 if in_burst else 2 * MINUTE
        median = case.size * (10 if in_burst else 1)
        late = case.story == "late" and number % 5 == 4
        events = [at]
        if late:
            median //= 5
            events = [int(e) for e in random.integers(0, at, 3 if case.many else 1)]
        if not case.many:
            partitions = [0]
        elif case.story == "late":
            partitions = [event // BUCKET for event in events]
        else:
            partitions = [int(p) for p in random.choice(REGIONS, 3, replace=False, p=weights)]
            events = [at] * 3
        sizes = [int(s) for s in median * random.lognormal(0, 0.7, len(events))]
        history.append(Append(at, tuple(zip(partitions, sizes, events, strict=True))))
    return history
