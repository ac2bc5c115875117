"""Coordinates of numbers, dates and timestamps by their place between a minimum and a maximum."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import ClassVar

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation import number
from otree.transformation.base import CLASS_PREFIX, ColumnStats, DeclaredStats, Transformation, Value
from otree.transformation.empty import EmptyTransformation
from otree.transformation.identity import IDENTITY_CLASS, IdentityTransformation
from otree.transformation.kind import DataFacts, Kind
from otree.transformation.legacy_zero import IDENTITY_TO_ZERO_CLASS, NULL_TO_ZERO_CLASS, LegacyZeroTransformation

LINEAR_CLASS = CLASS_PREFIX + "LinearTransformation"

_TIME_TYPES = ("DateDataType", "TimestampDataType")
_MILLIS_PER_DAY = 86_400_000
# Head-room of a time column toward later times, in spans: a quarter of the new range is in use, which costs two levels.
_TIME_HEAD_ROOM = 3
# A column of times counts as growing if its newest value is so near to now, as a share of its span, or within a day.
_RECENT_SHARE = 1 / 8

Ends = tuple[int | float, int | float]
"""Both ends of a range, in the data type's unit."""


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
        # No range of doubles reaches beyond the bounds, so values there must not request a new range each time.
        ends = [number.clamp(number.typed(end, self.data_type), self.data_type) for end in stats.ends]
        return all(self.minimum <= end <= self.maximum for end in ends)

    def value_at(self, coordinate: float) -> int | float:
        """Return the value at a coordinate; between two whole values, the upper one."""
        if coordinate in (0.0, 1.0):
            return self.maximum if coordinate else self.minimum
        value = float(self.minimum) + (float(self.maximum) - float(self.minimum)) * coordinate
        return math.ceil(value) if number.is_whole(self.data_type) else value

    def describe(self, kind: str, shown: Callable[[int | float], str]) -> str:  # noqa: ARG002 - may be of any kind
        """Return "linear", and the ends of the range."""
        return f"linear {shown(self.minimum)} to {shown(self.maximum)}"

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


class LinearKind(Kind):
    """The kind of numbers, dates, timestamps and booleans by default."""

    name: ClassVar[str] = "linear"
    transformer_classes: ClassVar[tuple[str, ...]] = (CLASS_PREFIX + "LinearTransformer",)
    transformations: ClassVar[Mapping[str, type[Transformation]]] = {
        LINEAR_CLASS: LinearTransformation,
        # The result for a range of one value, or of none.
        IDENTITY_CLASS: IdentityTransformation,
        IDENTITY_TO_ZERO_CLASS: LegacyZeroTransformation,
        NULL_TO_ZERO_CLASS: LegacyZeroTransformation,
    }

    def accepts(self, data_type: str, sql_type: str) -> bool:  # noqa: ARG002 - booleans are numbers here
        """See `Kind.accepts`."""
        return data_type in number.ORDERED_DATA_TYPES

    def check(self, column: str, data_type: str) -> None:
        """See `Kind.check`."""
        if data_type not in number.ORDERED_DATA_TYPES:
            raise IndexFormatError.of_field("dataType", data_type, f"numbers for linear column '{column}'")

    def data_facts(self, data_type: str) -> DataFacts:  # noqa: ARG002 - the same for all
        """See `Kind.data_facts`."""
        return DataFacts(span=True)

    def relevant(self, declared: DeclaredStats, sql_type: str) -> DeclaredStats:
        """See `Kind.relevant`."""
        if sql_type == "boolean":
            # Both values, whatever the data has so far: a boolean never needs another range.
            return DeclaredStats(0, 1)
        return DeclaredStats(declared.minimum, declared.maximum)

    def suits(self, data_type: str, space: Transformation, stats: ColumnStats) -> bool:
        """See `Kind.suits`."""
        return not isinstance(space, EmptyTransformation) and super().suits(data_type, space, stats)

    def make(
        self,
        column: str,  # noqa: ARG002 - the place of a value does not depend on it
        data_type: str,
        stats: ColumnStats,
        previous: Transformation | None,
    ) -> Transformation:
        """See `Kind.make`.

        Where the data left the previous range, the new one goes beyond it by head-room: the span of both together, and
        three times that span toward later times. A column that keeps growing by steady steps then needs a new range
        O(log n) times only. The first range of a time column has head-room of one span, toward later times, when its
        newest value is recent. A declared range is taken as it is: values inside need no head-room.
        """
        if previous is not None and self.suits(data_type, previous, stats):
            return previous
        before = range_of(previous, data_type)
        declared = typed_ends(stats.declared_span, data_type)
        known, seen = hull(before, declared), typed_ends(stats.span, data_type)
        if seen is None:
            return of_range(known, data_type)
        low, high = hull(known, seen) or seen
        span = high - low
        upward = span * _TIME_HEAD_ROOM if data_type in _TIME_TYPES else span
        if before is None or known is None:
            grows = (declared is None or seen[1] > declared[1]) and _is_recent(high, span, stats.now, data_type)
            return of_range((low, high + span if grows else high), data_type)
        with_room = (
            low - span if seen[0] < known[0] else low,
            high + upward if seen[1] > known[1] else high,
        )
        return of_range(with_room, data_type)


def _is_recent(newest: int | float, span: int | float, now: int | None, data_type: str) -> bool:
    """Say whether a column holds times up to about now, so that later ones will follow.

    Args:
        newest: Its largest value.
        span: Its largest value less its smallest.
        now: The time, in epoch milliseconds; None when unknown.
        data_type: The format's name of its data type.
    """
    return (
        now is not None and data_type in _TIME_TYPES and abs(now - newest) <= max(span * _RECENT_SHARE, _MILLIS_PER_DAY)
    )


def typed_ends(ends: Ends | None, data_type: str) -> Ends | None:
    """Return the range as the data type holds it."""
    return None if ends is None else (number.typed(ends[0], data_type), number.typed(ends[1], data_type))


def hull(one: Ends | None, other: Ends | None) -> Ends | None:
    """Return the smallest range that holds both."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def range_of(space: Transformation | None, data_type: str) -> Ends | None:
    """Return the range that a transformation was made for, or None where it is not recorded."""
    if isinstance(space, LinearTransformation):
        return space.minimum, space.maximum
    if isinstance(space, (IdentityTransformation, LegacyZeroTransformation)) and space.value is not None:
        value = number.typed(space.value, data_type)
        return value, value
    return None


def of_range(ends: Ends | None, data_type: str) -> Transformation:
    """Return the transformation of a range; a constant one where it is one value, or none."""
    if ends is None or ends[0] == ends[1]:
        return IdentityTransformation(None if ends is None else ends[0], data_type)
    low, high = number.separated(number.clamp(ends[0], data_type), number.clamp(ends[1], data_type), data_type)
    return LinearTransformation(low, high, low, data_type)
