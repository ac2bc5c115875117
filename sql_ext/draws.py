"""The weights of a sample, as callers name it; the same with Spark and without."""

from __future__ import annotations

from numbers import Real
from typing import Any

from catalog.errors import InvalidArgumentError
from otree.weight import bounds_of_draw, draws_of


def checked_bounds(fraction: Any, draw: Any) -> tuple[float, float]:
    """Returns the range of a sample's weights, as fractions of all.

    Args:
        fraction: share of the rows; a number of Python or NumPy.
        draw: number of the sample, from 1 to the whole part of ``1 / fraction``.

    Raises:
        InvalidArgumentError: a fraction or draw that is not accepted.
    """
    if not _is_number(fraction) or not 0.0 < fraction <= 1.0:
        raise InvalidArgumentError.of("fraction", str(fraction), "a number above 0, up to 1")
    share = float(fraction)
    draws = draws_of(share)
    if not _is_number(draw) or draw not in range(1, draws + 1):
        accepted = f"a whole number from 1 to {draws} for a fraction of {share:g}"
        raise InvalidArgumentError.of("draw", str(draw), accepted)
    return bounds_of_draw(share, int(draw))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
