"""The transformation of data that is not indexed yet."""

from collections.abc import Mapping
from dataclasses import dataclass

from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value

EMPTY_CLASS = CLASS_PREFIX + "EmptyTransformation"


@dataclass(frozen=True)
class EmptyTransformation(Transformation):
    """Everything lies at coordinate 0; used by the staging revision.

    Source:
        Index format, sections 3 and 8.
    """

    def coordinate(self, value: Value) -> float:  # noqa: ARG002 - the place of every value is the same
        """Return 0."""
        return 0.0

    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:  # noqa: ARG002 - likewise
        """Return (0, 0): every value lies there."""
        return 0.0, 0.0

    def covers(self, stats: ColumnStats) -> bool:  # noqa: ARG002 - no data is refused
        """Say yes: every value has a place."""
        return True

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object."""
        return {"className": EMPTY_CLASS}

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "EmptyTransformation":  # noqa: ARG003 - there are no fields
        """Read the format's JSON object."""
        return cls()
