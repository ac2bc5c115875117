"""Transformers: how a column is to be indexed, and the transformation that its data asks for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation import (
    ColumnStats,
    EmptyTransformation,
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    Transformation,
    number,
)
from otree.transformation.base import CLASS_PREFIX

LINEAR = "linear"
HASHING = "hashing"
EMPTY = "empty"

_CLASS_OF_KIND = {
    LINEAR: CLASS_PREFIX + "LinearTransformer",
    HASHING: CLASS_PREFIX + "HashTransformer",
    EMPTY: CLASS_PREFIX + "EmptyTransformer",
}
_KIND_OF_CLASS = {class_name: kind for kind, class_name in _CLASS_OF_KIND.items()}

# The format has no names for bytes and shorts: their values fit its integer.
DATA_TYPES: Mapping[str, str] = {
    "tinyint": "IntegerDataType",
    "smallint": "IntegerDataType",
    "int": "IntegerDataType",
    "bigint": "LongDataType",
    "float": "FloatDataType",
    "double": "DoubleDataType",
    "decimal": "DecimalDataType",
    "timestamp": "TimestampDataType",
    "date": "DateDataType",
    "string": "StringDataType",
}
"""Spark's simple type names (a decimal without its precision) to the format's names."""

_DECIMAL_ARGUMENTS = re.compile(r"^decimal\(\s*\d+\s*,\s*-?\d+\s*\)$")


def format_data_type(spark_type: str) -> str | None:
    """Return the format's name of a Spark type.

    Args:
        spark_type: Spark's simple type name, e.g. "bigint" or "decimal(10,2)".

    Returns:
        The name, or None when a column of this type cannot be indexed.
    """
    name = spark_type.strip().lower()
    return DATA_TYPES.get("decimal" if _DECIMAL_ARGUMENTS.match(name) else name)


@dataclass(frozen=True)
class Transformer:
    """How one column is indexed.

    Attributes:
        kind: "linear", "hashing" or "empty".
        column: Name of the column.
        data_type: The format's name of its data type; empty for kind "empty", which has none in the format.

    Source:
        Index format, section 3.
    """

    kind: str
    column: str
    data_type: str

    def __post_init__(self) -> None:
        """Refuse what the format cannot express.

        Raises:
            IndexFormatError: If the kind is unknown or does not suit the data type.
        """
        if self.kind not in _CLASS_OF_KIND:
            raise IndexFormatError.of_field("kind", self.kind, "one of " + ", ".join(_CLASS_OF_KIND))
        if self.kind == LINEAR and self.data_type not in number.ORDERED_DATA_TYPES:
            raise IndexFormatError.of_field("dataType", self.data_type, f"numbers for linear column '{self.column}'")

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object, keys in the format's order."""
        node: dict[str, object] = {"className": _CLASS_OF_KIND[self.kind], "columnName": self.column}
        if self.kind != EMPTY:
            node["dataType"] = self.data_type
        return node

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "Transformer":
        """Read one element of a revision's `columnTransformers`.

        Raises:
            IndexFormatError: If the class is not known, or a field is missing or wrong.
        """
        class_name = format_json.text_field(node, "className")
        if class_name not in _KIND_OF_CLASS:
            raise IndexFormatError.of_field("className", class_name, "one of " + ", ".join(sorted(_KIND_OF_CLASS)))
        kind = _KIND_OF_CLASS[class_name]
        data_type = "" if kind == EMPTY else format_json.text_field(node, "dataType")
        return cls(kind, format_json.text_field(node, "columnName"), data_type)


def make_transformation(
    transformer: Transformer, stats: ColumnStats, previous: Transformation | None = None
) -> Transformation:
    """Return the transformation whose space holds the data.

    Where the data left the previous range, the new one goes beyond it by the span of both together: a column that
    keeps growing by steady steps then needs a new range O(log n) times only.

    Args:
        transformer: How the column is indexed.
        stats: Range of all values the space must hold, in the transformation's unit.
        previous: The column's transformation so far, if any; its range stays covered.

    Returns:
        `previous` itself when it suffices, else a new transformation.
    """
    if transformer.kind == EMPTY:
        return EmptyTransformation()
    if transformer.kind == HASHING:
        if isinstance(previous, HashTransformation):
            return previous
        return HashTransformation.for_column(transformer.column)
    data_type = transformer.data_type
    if isinstance(previous, (LinearTransformation, IdentityTransformation)):
        if previous.data_type == data_type and previous.covers(stats):
            return previous
        known = _range_of(previous)
    else:
        known = None
    found = None
    if stats.span is not None:
        found = number.typed(stats.span[0], data_type), number.typed(stats.span[1], data_type)
    if known is None or found is None:
        return _of_range(found or known, data_type)
    low, high = min(known[0], found[0]), max(known[1], found[1])
    span = high - low
    with_room = (
        low - span if found[0] < known[0] else low,
        high + span if found[1] > known[1] else high,
    )
    return _of_range(with_room, data_type)


def _range_of(previous: LinearTransformation | IdentityTransformation) -> tuple[int | float, int | float] | None:
    if isinstance(previous, LinearTransformation):
        return previous.minimum, previous.maximum
    return None if previous.value is None else (previous.value, previous.value)


def _of_range(ends: tuple[int | float, int | float] | None, data_type: str) -> Transformation:
    if ends is None or ends[0] == ends[1]:
        return IdentityTransformation(None if ends is None else ends[0], data_type)
    low, high = number.separated(number.clamp(ends[0], data_type), number.clamp(ends[1], data_type), data_type)
    return LinearTransformation(low, high, low, data_type)
