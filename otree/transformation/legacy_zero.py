"""Constant and all-null columns as version 0.7 of the format wrote them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value

IDENTITY_TO_ZERO_CLASS = CLASS_PREFIX + "IdentityToZeroTransformation"
NULL_TO_ZERO_CLASS = CLASS_PREFIX + "NullToZeroTransformation"


@dataclass(frozen=True)
class LegacyZeroTransformation(Transformation):
    """Everything lies at coordinate 0; read, and never made.

    Attributes:
        value: The one value besides null; None when all values are null or the value is no number.
        node: The JSON object as it was read; it is written back unchanged.

    Source:
        Index format, section 12.
    """

    value: int | float | None
    node: Mapping[str, object] = field(hash=False)

    def coordinate(self, value: Value) -> float:  # noqa: ARG002 - the place of every value is the same
        """Return 0."""
        return 0.0

    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:  # noqa: ARG002 - likewise
        """Return (0, 0): every value lies there, so this holds for every range."""
        return 0.0, 0.0

    def covers(self, stats: ColumnStats) -> bool:
        """Say whether all values are null or the one value."""
        return all(end == self.value for end in stats.ends)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object as it was read."""
        return dict(self.node)

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "LegacyZeroTransformation":
        """Read the JSON object of either class."""
        value = node.get("identityValue")
        known = isinstance(value, (int, float)) and not isinstance(value, bool)
        return cls(value if known and isinstance(value, (int, float)) else None, dict(node))
