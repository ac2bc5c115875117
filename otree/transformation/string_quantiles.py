"""Coordinates of strings by their place among quantiles."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value
from otree.transformation.search import found_in, is_ascending, range_in

STRING_QUANTILES_CLASS = CLASS_PREFIX + "CDFStringQuantilesTransformation"

# Enough of a string to distinguish it from its neighbours, and little enough to be kept in a table property.
LONGEST_ESTIMATE = 64

# From here on, the order of UTF-16 units (Java's strings, so other writers) differs from that of UTF-8 bytes (Spark).
_FIRST_UNORDERED = "\ud800"


@dataclass(frozen=True)
class StringQuantilesTransformation(Transformation):
    """The share of quantiles up to a string: each string takes the place of the quantile at or before it.

    Strings before the first quantile share coordinate 0, strings after the last coordinate 1; null takes 0. The order
    is that of Spark: by UTF-8 bytes.

    Attributes:
        quantiles: At least two strings, ascending.

    Source:
        Index format, sections 3 and 4.
    """

    quantiles: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check the quantiles.

        Raises:
            IndexFormatError: If there are no two quantiles, or they ascend in no order that writers use.
        """
        by_units = [quantile.encode("utf-16-be", "surrogatepass") for quantile in self.quantiles]
        if len(self.quantiles) < 2 or not (is_ascending(self._bytes) or is_ascending(by_units)):
            raise IndexFormatError.of_field("quantiles", self.quantiles, "at least two strings in ascending order")

    @classmethod
    def of_estimate(cls, estimate: Sequence[str]) -> "StringQuantilesTransformation | None":
        """Return the transformation of quantiles with repetitions; None when fewer than two are different.

        Quantiles are shortened, and end before a character whose place depends on the writer: a separator need not be
        a value.
        """
        distinct = {_shortened(quantile) for quantile in estimate}
        return cls(tuple(sorted(distinct))) if len(distinct) > 1 else None

    @cached_property
    def _bytes(self) -> tuple[bytes, ...]:
        return tuple(_utf8(quantile) for quantile in self.quantiles)

    @cached_property
    def _one_order(self) -> bool:
        """Whether every string has the same place in all orders that writers use."""
        return all(character < _FIRST_UNORDERED for quantile in self.quantiles for character in quantile)

    def coordinate(self, value: Value) -> float:
        """Return the coordinate in [0, 1] of a string (or its UTF-8 bytes), None being null.

        Raises:
            TypeError: If the value is a number.
        """
        if value is None:
            return 0.0
        at, hit = found_in(self._bytes, _utf8(value))
        return self._place(at, hit=hit)

    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:
        """Return the closed coordinate interval of the strings from lower to upper, None = unbounded.

        The whole axis when the place of a string depends on the writer.

        Raises:
            TypeError: If a bound is a number.
        """
        start, end = 0.0, 1.0
        if lower is not None:
            first, last = range_in(self._bytes, _utf8(lower))
            start = self._place(first, hit=first < last)
        if upper is not None:
            first, last = range_in(self._bytes, _utf8(upper))
            end = self._place(last - 1 if first < last else last, hit=first < last)
        return (start, end) if self._one_order else (0.0, 1.0)

    def value_at(self, coordinate: float) -> str:
        """Return the quantile at a coordinate; between two, the upper one."""
        return self.quantiles[math.ceil(coordinate * (len(self.quantiles) - 1))]

    def covers(self, stats: ColumnStats) -> bool:
        """Say whether these are the quantiles declared, or none are: every string has a place."""
        declared = stats.declared.quantiles
        return declared is None or declared == self.quantiles

    def _place(self, at: int, *, hit: bool) -> float:
        """The coordinate of a string that equals the quantile `at` (a hit), or lies just before it."""
        steps = len(self.quantiles) - 1
        if hit:
            return at / steps
        if at > steps:
            return 1.0
        return max(at - 1, 0) / steps

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object."""
        return {"className": STRING_QUANTILES_CLASS, "quantiles": list(self.quantiles)}

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "StringQuantilesTransformation":
        """Read the format's JSON object.

        Raises:
            IndexFormatError: If the quantiles are missing or wrong.
        """
        nodes = format_json.as_array(node.get("quantiles"), "quantiles")
        return cls(tuple(format_json.text_field({"quantiles": q}, "quantiles") for q in nodes))


def _utf8(value: int | float | str | bytes | Decimal) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"A string column holds text, not {value!r}")
    # A lone surrogate is no character; the JVM writes a question mark for it, and so do we.
    return value.encode("utf-8", "replace")


def _shortened(text: str) -> str:
    ordered = next((i for i, character in enumerate(text) if character >= _FIRST_UNORDERED), len(text))
    return text[: min(ordered, LONGEST_ESTIMATE)]
