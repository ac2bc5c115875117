"""The interface of every transformation from column values to coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

CLASS_PREFIX = "io.qbeast.core.transform."
"""Package in front of every class name of the format; readers match the full name."""

Value = int | float | str | bytes | Decimal | None
"""A column value; timestamps and dates as epoch milliseconds (dates at UTC midnight), None = null."""


@dataclass(frozen=True)
class DeclaredStats:
    """Column statistics that the owner of a table declares, in the transformation's unit.

    Attributes:
        minimum: Smallest value expected, None when not said.
        maximum: Largest value expected, None when not said; both ends are given or none.
        quantiles: Ascending values that split the column into equal parts, None when not said.
    """

    minimum: int | float | None = None
    maximum: int | float | None = None
    quantiles: tuple[float, ...] | tuple[str, ...] | None = None


@dataclass(frozen=True)
class ColumnStats:
    """Range of a column's finite, non-null values, in the transformation's unit.

    Attributes:
        minimum: Smallest value, None when all values are null.
        maximum: Largest value, None when all values are null.
        estimated: Quantiles estimated from the values, in any number and with repetitions; None when not requested.
        declared: Statistics that the owner declares; they widen the range and take precedence over the estimate.
        now: Epoch milliseconds at which a range is made for the values; None when the time does not matter.
    """

    minimum: int | float | None
    maximum: int | float | None
    estimated: tuple[float, ...] | tuple[str, ...] | None = None
    declared: DeclaredStats = DeclaredStats()
    now: int | None = None

    def __post_init__(self) -> None:
        """Refuse half a range.

        Raises:
            ValueError: If only one end is given, or the ends are in the wrong order or NaN.
        """
        if (self.minimum is None) != (self.maximum is None):
            raise ValueError(f"Column statistics need both ends or none, got {self.minimum} and {self.maximum}")
        if self.minimum is not None and self.maximum is not None and not self.minimum <= self.maximum:
            raise ValueError(f"Column statistics start at {self.minimum}, above their end {self.maximum}")

    @property
    def span(self) -> tuple[int | float, int | float] | None:
        """Both ends of the values found, or None when all values are null."""
        return None if self.minimum is None or self.maximum is None else (self.minimum, self.maximum)

    @property
    def declared_span(self) -> tuple[int | float, int | float] | None:
        """Both ends of the range that the owner declared, or None."""
        low, high = self.declared.minimum, self.declared.maximum
        return None if low is None or high is None else (low, high)

    @property
    def ends(self) -> tuple[int | float, ...]:
        """Every value that the space must hold: the ends found and the ends declared."""
        return (self.span or ()) + (self.declared_span or ())


class Transformation(ABC):
    """Maps the values of one column to coordinates in [0, 1]."""

    @abstractmethod
    def coordinate(self, value: Value) -> float:
        """Return the coordinate in [0, 1] of a value, None being null."""

    @abstractmethod
    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:
        """Return where the values of a range lie.

        Args:
            lower: Smallest value, inclusive; None = unbounded.
            upper: Largest value, inclusive; None = unbounded, which includes +infinity and NaN.

        Returns:
            A closed interval that holds the coordinate of every non-null value v with lower <= v <= upper. Nulls
            are elsewhere: see `null_coordinate`.
        """

    @property
    def null_coordinate(self) -> float:
        """The coordinate that null is written to."""
        return self.coordinate(None)

    @property
    def null_interval(self) -> tuple[float, float]:
        """Where nulls may lie: the one point, or the whole axis when the writer did not record its choice."""
        return self.null_coordinate, self.null_coordinate

    def value_at(self, coordinate: float) -> int | float | str | None:  # noqa: ARG002 - for those that can tell
        """Return a value that lies at a coordinate; None where coordinates do not lead back to values."""
        return None

    def describe(self, kind: str, shown: Callable[[int | float], str]) -> str:  # noqa: ARG002 - for those with values
        """Return the transformation in words, such as "linear 0 to 99".

        Args:
            kind: The kind of the column.
            shown: Spells a number of the column's data type, which may be a date or a timestamp.
        """
        return kind

    @abstractmethod
    def covers(self, stats: ColumnStats) -> bool:
        """Say whether data of these statistics fits the space, so that no new revision is needed."""

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object, keys in the format's order."""

    @classmethod
    @abstractmethod
    def from_json(cls, node: Mapping[str, object]) -> "Transformation":
        """Read the format's JSON object.

        Raises:
            IndexFormatError: If a field is missing or of the wrong type.
        """
