"""Coordinates of numbers, dates and timestamps by their place between a minimum and a maximum."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation import number
from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value

LINEAR_CLASS = CLASS_PREFIX + "LinearTransformation"


@dataclass(frozen=True)
class LinearTransformation(Transformation):
    """(value - minimum) * (1 / (maximum - minimum)) in doubles, kept within [0, 1].

    Values beyond the range share the coordinate of its end; NaN comes last, as in Spark's order.

    Attributes:
        minimum: Value of coordinate 0, in the data type's unit (epoch milliseconds for dates and timestamps).
        maximum: Value of coordinate 1, likewise.
        null_value: Value whose coordinate null takes; None when the writer did not record it.
        data_type: The format's name of the data type.

    Source:
        Index format, sections 3 and 4.
    """

    minimum: int | float
    maximum: int | float
    null_value: int | float | None
    data_type: str

    def __post_init__(self) -> None:
        """Bring the numbers to the data type and check the range.

        Raises:
            IndexFormatError: If the data type is unknown or the range cannot be scaled to [0, 1].
        """
        for field in ("minimum", "maximum", "null_value"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, number.typed(getattr(self, field), self.data_type))
        if not number.is_usable_range(self.minimum, self.maximum):
            raise IndexFormatError.of_field("maxNumber", self.maximum, f"more than minNumber {self.minimum}")

    @cached_property
    def _origin(self) -> float:
        return float(self.minimum)

    @cached_property
    def _scale(self) -> float:
        return 1.0 / (float(self.maximum) - self._origin)

    def coordinate(self, value: Value) -> float:
        """Return the coordinate in [0, 1] of a number, None being null.

        Raises:
            TypeError: If the value is text.
        """
        if value is None:
            value = self.minimum if self.null_value is None else self.null_value
        return self._scaled(value, math.floor)

    @property
    def null_interval(self) -> tuple[float, float]:
        """Where nulls may lie: anywhere when the writer did not record its choice."""
        return (0.0, 1.0) if self.null_value is None else (self.null_coordinate, self.null_coordinate)

    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:
        """Return the closed coordinate interval of the values from lower to upper, None = unbounded.

        A fraction of a whole unit (of a millisecond, say) is rounded outward, so that the interval holds no matter
        how a row's own fraction was cut.

        Raises:
            TypeError: If a bound is text.
        """
        start = 0.0 if lower is None else self._scaled(lower, math.floor)
        end = 1.0 if upper is None else self._scaled(upper, math.ceil)
        return start, end

    def covers(self, stats: ColumnStats) -> bool:
        """Say whether the values lie in the range, or all are null."""
        # No range of doubles reaches beyond the bounds, so values there must not ask for a new one again and again.
        ends = [number.clamp(number.typed(end, self.data_type), self.data_type) for end in stats.ends]
        return all(self.minimum <= end <= self.maximum for end in ends)

    def _scaled(self, value: int | float | Decimal | str | bytes, to_whole: Callable[[float | Decimal], int]) -> float:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"A {self.data_type} column holds numbers, not {value!r}")
        exact = number.as_double(value)
        if math.isnan(exact) or exact == math.inf:
            return 1.0
        if exact == -math.inf:
            return 0.0
        if not isinstance(value, int) and number.is_whole(self.data_type):
            exact = float(to_whole(value))
        return min(max((exact - self._origin) * self._scale, 0.0), 1.0)

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object."""
        node: dict[str, object] = {
            "className": LINEAR_CLASS,
            "minNumber": number.spelled(self.minimum, self.data_type),
            "maxNumber": number.spelled(self.maximum, self.data_type),
        }
        if self.null_value is not None:
            node["nullValue"] = number.spelled(self.null_value, self.data_type)
        return {**node, "orderedDataType": self.data_type}

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "LinearTransformation":
        """Read the format's JSON object; the null value may be absent.

        Raises:
            IndexFormatError: If a field is missing or wrong.
        """
        data_type = format_json.text_field(node, "orderedDataType")
        minimum = number.read(node, "minNumber", data_type)
        maximum = number.read(node, "maxNumber", data_type)
        null_value = None if node.get("nullValue") is None else number.read(node, "nullValue", data_type)
        return cls(minimum, maximum, null_value, data_type)
