"""The transformation of data that is not indexed yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value
from otree.transformation.kind import Kind

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


class EmptyKind(Kind):
    """Columns of the staging revision, which have no data type in the format."""

    name: ClassVar[str] = "empty"
    offered: ClassVar[bool] = False
    transformer_classes: ClassVar[tuple[str, ...]] = (CLASS_PREFIX + "EmptyTransformer",)
    transformations: ClassVar[Mapping[str, type[Transformation]]] = {EMPTY_CLASS: EmptyTransformation}

    def to_json(self, column: str, data_type: str) -> dict[str, object]:  # noqa: ARG002 - there is none
        """See `Kind.to_json`."""
        return {"className": self.transformer_classes[0], "columnName": column}

    def read_data_type(self, node: Mapping[str, object]) -> str:  # noqa: ARG002 - there is none
        """Return ''."""
        return ""

    def make(self, column: str, data_type: str, stats: ColumnStats, previous: Transformation | None) -> Transformation:  # noqa: ARG002 - all are the same
        """See `Kind.make`."""
        return EmptyTransformation()
