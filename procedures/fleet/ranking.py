"""The order in which tables get a share of the budget: the best saving per byte first, and nothing starves; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from procedures.fleet.offer import Offer

# What a table offers counts twice as much for each time that it has waited so long, at most so many times.
DOUBLING_MILLIS = 14 * 86_400_000
MOST_DOUBLINGS = 40

_Waiting = TypeVar("_Waiting")


def priority(offer: Offer, waited_millis: int) -> float:
    """What decides who comes first: the saving per byte, which doubles for every two weeks of waiting.

    A table passes those that save n times as much per byte and were rewritten just now after log2(n) doublings: two
    weeks for twice as much. Shorter times spend the budget on old work instead of on work that saves more.
    Offers that are not worth their bytes have no priority, however long they wait. What an owner asks for comes first.

    Args:
        offer: what the table offers.
        waited_millis: since when it could have been rewritten.
    """
    if not offer.is_worthwhile:
        return 0.0
    if offer.is_asked:
        return math.inf
    return offer.saving_per_byte * math.pow(2.0, min(max(waited_millis, 0) / DOUBLING_MILLIS, MOST_DOUBLINGS))


def ranked(tables: Iterable[_Waiting], of: Callable[[_Waiting], tuple[Offer, int]]) -> list[_Waiting]:
    """The tables whose offers are worthwhile, in their order.

    Args:
        tables: the tables; those of equal priority keep their order.
        of: what a table offers, and for how many milliseconds it has waited.
    """
    priorities = [(priority(*of(table)), table) for table in tables]
    return [table for value, table in sorted(priorities, key=lambda pair: -pair[0]) if value > 0]
