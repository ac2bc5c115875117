"""What every transformation from column values to coordinates can do."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

CLASS_PREFIX = "io.qbeast.core.transform."
"""Package in front of every class name of the format; readers match the full name."""

Value = int | float | str | bytes | Decimal | None
"""A column value; timestamps and dates as epoch milliseconds (dates at UTC midnight), None = null."""


@dataclass(frozen=True)
class ColumnStats:
    """Range of a column's finite, non-null values, in the transformation's unit.

    Attributes:
        minimum: Smallest value, None when all values are null.
        maximum: Largest value, None when all values are null.
    """

    minimum: int | float | None
    maximum: int | float | None

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
        """Both ends, or None when all values are null."""
        return None if self.minimum is None or self.maximum is None else (self.minimum, self.maximum)


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
        """The coordinate of null."""
        return self.coordinate(None)

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
