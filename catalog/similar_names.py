"""The known names that are most similar to an unknown one, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import takewhile

_MOST_NEAR_NAMES = 3
_VERY_SIMILAR = 0.8
_ALMOST_AS_SIMILAR = 0.1


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Returns the known name that is most similar to a name, case-insensitively; None if none is similar.

    Args:
        name: the unknown name.
        known: existing names.
        cutoff: minimum similarity, from 0 to 1.
    """
    return next(iter(nearest_names(name, known, cutoff)), None)


def nearest_names(name: str, known: Iterable[str], cutoff: float = 0.5) -> list[str]:
    """Returns the most similar known name, and if none is very similar, up to two that are almost as similar.

    Args:
        name: the unknown name.
        known: existing names.
        cutoff: minimum similarity, from 0 to 1.
    """
    by_lower = {n.lower(): n for n in sorted(known)}
    similar = {other: _similarity(name.lower(), other) for other in by_lower}
    near = sorted((other for other in similar if similar[other] >= cutoff), key=lambda other: -similar[other])
    least = max(similar.values(), default=0.0)
    if least < _VERY_SIMILAR:
        least -= _ALMOST_AS_SIMILAR
    return [by_lower[other] for other in near[:_MOST_NEAR_NAMES] if similar[other] >= least]


def _similarity(name: str, other: str) -> float:
    """Returns the similarity of two names from 0 to 1, without the dotted prefix that they share.

    All properties of a family begin alike, which makes none of them similar.
    """
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
    shared = name.rfind(".", 0, alike) + 1
    return difflib.SequenceMatcher(None, other[shared:], name[shared:]).ratio()
