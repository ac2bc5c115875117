"""Coordinates of a column that holds one value only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from otree import format_json
from otree.transformation import number
from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value

IDENTITY_CLASS = CLASS_PREFIX + "IdentityTransformation"


@dataclass(frozen=True)
class IdentityTransformation(Transformation):
    """Everything lies at coordinate 0.

    Attributes:
        value: The one value besides null, None when all values are null.
        data_type: The format's name of the data type.

    Source:
        Index format, sections 3 and 4.
    """

    value: int | float | None
    data_type: str

    def __post_init__(self) -> None:
        """Bring the value to the data type.

        Raises:
            IndexFormatError: If the data type is unknown.
        """
        number.bounds(self.data_type)
        if self.value is not None:
            object.__setattr__(self, "value", number.typed(self.value, self.data_type))

    def coordinate(self, value: Value) -> float:  # noqa: ARG002 - the place of every value is the same
        """Return 0."""
        return 0.0

    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:  # noqa: ARG002 - likewise
        """Return (0, 0): every value lies there, so this holds for every range."""
        return 0.0, 0.0

    def value_at(self, coordinate: float) -> int | float | None:  # noqa: ARG002 - the same everywhere
        """Return the one value."""
        return self.value

    def describe(self, kind: str, shown: Callable[[int | float], str]) -> str:  # noqa: ARG002 - may be of any kind
        """Return "identity", and the value."""
        return f"identity {'null' if self.value is None else shown(self.value)}"

    def covers(self, stats: ColumnStats) -> bool:
        """Say whether all values are null or the one value."""
        return all(number.typed(end, self.data_type) == self.value for end in stats.ends)

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object."""
        value = None if self.value is None else number.spelled(self.value, self.data_type)
        return {"className": IDENTITY_CLASS, "identityValue": value, "orderedDataType": self.data_type}

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "IdentityTransformation":
        """Read the format's JSON object.

        Raises:
            IndexFormatError: If a field is missing or wrong.
        """
        data_type = format_json.text_field(node, "orderedDataType")
        value = None if node.get("identityValue") is None else number.read(node, "identityValue", data_type)
        return cls(value, data_type)
