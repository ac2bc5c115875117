"""Coordinates of numbers, dates and timestamps by their place among quantiles."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation import number
from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value
from otree.transformation.search import found_in, is_ascending, range_in

NUMERIC_QUANTILES_CLASS = CLASS_PREFIX + "CDFNumericQuantilesTransformation"

# The format does not say in which order the share of a step is added: other writers may differ in the last bits.
_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class NumericQuantilesTransformation(Transformation):
    """The share of quantiles below a value, linear between neighbours.

    Values before the first quantile share coordinate 0, values after the last coordinate 1; null takes 0, and NaN
    comes last, as in Spark's order.

    Attributes:
        quantiles: At least two numbers, ascending, in the data type's unit (epoch milliseconds for times).
        data_type: The format's name of the data type.

    Source:
        Index format, sections 3 and 4.
    """

    quantiles: tuple[float, ...]
    data_type: str

    def __post_init__(self) -> None:
        """Bring the quantiles to doubles and check them.

        Raises:
            IndexFormatError: If the data type is unknown, or there are no two quantiles, or they do not ascend.
        """
        number.bounds(self.data_type)
        doubles = tuple(number.as_double(quantile) for quantile in self.quantiles)
        least, greatest = number.bounds("DoubleDataType")
        if len(doubles) < 2 or not is_ascending(doubles) or not least <= doubles[0] <= doubles[-1] <= greatest:
            raise IndexFormatError.of_field("quantiles", self.quantiles, "at least two numbers in ascending order")
        object.__setattr__(self, "quantiles", doubles)

    @classmethod
    def of_estimate(cls, estimate: Sequence[float], data_type: str) -> "NumericQuantilesTransformation | None":
        """Return the transformation of quantiles with repetitions; None when fewer than two are different."""
        least, greatest = number.bounds("DoubleDataType")
        distinct = sorted({min(max(number.as_double(quantile), least), greatest) for quantile in estimate})
        return cls(tuple(distinct), data_type) if len(distinct) > 1 else None

    def coordinate(self, value: Value) -> float:
        """Return the coordinate in [0, 1] of a number, None being null.

        Raises:
            TypeError: If the value is text.
        """
        if value is None:
            return 0.0
        double = self._double(value, math.floor)
        at, hit = found_in(self.quantiles, double)
        return self._place(double, at, hit=hit)

    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:
        """Return the closed coordinate interval of the values from lower to upper, None = unbounded.

        Raises:
            TypeError: If a bound is text.
        """
        start, end = 0.0, 1.0
        if lower is not None:
            double = self._double(lower, math.floor)
            first, last = range_in(self.quantiles, double)
            start = max(self._place(double, first, hit=first < last) - self._doubt(first, last), 0.0)
        if upper is not None:
            double = self._double(upper, math.ceil)
            first, last = range_in(self.quantiles, double)
            end = self._place(double, last - 1 if first < last else last, hit=first < last)
            end = min(end + self._doubt(first, last), 1.0)
        return start, end

    def value_at(self, coordinate: float) -> int | float:
        """Return the value at a coordinate; between two whole values, the upper one."""
        below, part = divmod(coordinate * (len(self.quantiles) - 1), 1)
        ends = self.quantiles[int(below) : int(below) + 2]
        value = ends[0] + (ends[-1] - ends[0]) * part
        return math.ceil(value) if number.is_whole(self.data_type) else value

    def covers(self, stats: ColumnStats) -> bool:
        """Say whether these are the quantiles declared, or none are: every value has a place."""
        declared = stats.declared.quantiles
        return declared is None or declared == self.quantiles

    def _double(self, value: int | float | Decimal | str | bytes, to_whole: Callable[[float | Decimal], int]) -> float:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"A {self.data_type} column holds numbers, not {value!r}")
        double = number.as_double(value)
        if isinstance(value, int) or not math.isfinite(double) or not number.is_whole(self.data_type):
            return double
        return number.as_double(to_whole(value))

    def _doubt(self, first: int, last: int) -> float:
        """How far another writer's coordinate may be off: not at all where none is interpolated."""
        return 0.0 if first < last or first in (0, len(self.quantiles)) else _ROUNDING

    def _place(self, value: float, at: int, *, hit: bool) -> float:
        """The coordinate of a value that equals the quantile `at` (a hit), or lies just before it."""
        steps = len(self.quantiles) - 1
        if hit:
            return at / steps
        if at == 0:
            return 0.0
        if at > steps:
            return 1.0
        low, high = self.quantiles[at - 1], self.quantiles[at]
        return (at - 1 + (value - low) / (high - low)) / steps

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object."""
        return {
            "className": NUMERIC_QUANTILES_CLASS,
            "quantiles": list(self.quantiles),
            "dataType": self.data_type,
        }

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "NumericQuantilesTransformation":
        """Read the format's JSON object.

        Raises:
            IndexFormatError: If a field is missing or wrong.
        """
        nodes = format_json.as_array(node.get("quantiles"), "quantiles")
        quantiles = tuple(number.as_double(format_json.number_field({"quantiles": q}, "quantiles")) for q in nodes)
        return cls(quantiles, format_json.text_field(node, "dataType"))
