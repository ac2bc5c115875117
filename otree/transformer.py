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
    LegacyZeroTransformation,
    LinearTransformation,
    NumericQuantilesTransformation,
    StringQuantilesTransformation,
    Transformation,
    number,
)
from otree.transformation.base import CLASS_PREFIX

LINEAR = "linear"
HASHING = "hashing"
QUANTILES = "quantiles"
EMPTY = "empty"

STRING = "StringDataType"

_STRING_QUANTILES_CLASS = CLASS_PREFIX + "CDFStringQuantilesTransformer"
_CLASS_OF_KIND = {
    LINEAR: CLASS_PREFIX + "LinearTransformer",
    HASHING: CLASS_PREFIX + "HashTransformer",
    QUANTILES: CLASS_PREFIX + "CDFNumericQuantilesTransformer",
    EMPTY: CLASS_PREFIX + "EmptyTransformer",
}
_KIND_OF_CLASS = {class_name: kind for kind, class_name in _CLASS_OF_KIND.items()} | {
    _STRING_QUANTILES_CLASS: QUANTILES
}

# The format has no names for bytes, shorts, booleans, timestamps without zone and binaries: they take the name of the
# type that holds their values, and the table's own properties tell what they are.
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
    "string": STRING,
    "boolean": "IntegerDataType",
    "timestamp_ntz": "TimestampDataType",
    "binary": STRING,
}
"""Spark's simple type names (a decimal without its precision) to the format's names."""

EXTENDED_TYPES = frozenset({"tinyint", "smallint", "boolean", "timestamp_ntz", "binary"})
"""Types that other writers of the format cannot index, although the name they take here is one of its names."""

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
        kind: "linear", "hashing", "quantiles" or "empty".
        column: Name of the column as it is stored; the names of a nested one, joined by dots.
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
        if self.kind == QUANTILES and self.data_type != STRING and self.data_type not in number.ORDERED_DATA_TYPES:
            raise IndexFormatError.of_field("orderedDataType", self.data_type, "numbers or strings for quantiles")

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object, keys in the format's order."""
        node: dict[str, object] = {"className": _CLASS_OF_KIND[self.kind], "columnName": self.column}
        if self.kind == QUANTILES and self.data_type == STRING:
            node["className"] = _STRING_QUANTILES_CLASS
        elif self.kind == QUANTILES:
            node["orderedDataType"] = self.data_type
        elif self.kind != EMPTY:
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
        if kind == EMPTY:
            data_type = ""
        elif class_name == _STRING_QUANTILES_CLASS:
            data_type = STRING
        else:
            data_type = format_json.text_field(node, "orderedDataType" if kind == QUANTILES else "dataType")
        return cls(kind, format_json.text_field(node, "columnName"), data_type)


def make_transformation(
    transformer: Transformer, stats: ColumnStats, previous: Transformation | None = None
) -> Transformation:
    """Return the transformation whose space holds the data.

    Where the data left the previous range, the new one goes beyond it by the span of both together: a column that
    keeps growing by steady steps then needs a new range O(log n) times only. A declared range is taken as it is: what
    lies inside needs no head-room.

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
    if previous is not None and suits(transformer, previous, stats):
        return previous
    if transformer.kind == QUANTILES:
        return _of_quantiles(transformer.data_type, stats, previous)
    data_type = transformer.data_type
    before = _range_of(previous, data_type)
    known = _hull(before, _typed(stats.declared_span, data_type))
    found = _typed(stats.span, data_type)
    if before is None or known is None or found is None:
        return _of_range(_hull(known, found), data_type)
    low, high = min(known[0], found[0]), max(known[1], found[1])
    span = high - low
    with_room = (
        low - span if found[0] < known[0] else low,
        high + span if found[1] > known[1] else high,
    )
    return _of_range(with_room, data_type)


def suits(transformer: Transformer, space: Transformation, stats: ColumnStats) -> bool:
    """Say whether a column's transformation so far also suits data of these statistics.

    Args:
        transformer: How the column is indexed.
        space: The transformation so far.
        stats: Of the data to come, and what the owner declares.
    """
    if transformer.kind == QUANTILES and not isinstance(
        space, (NumericQuantilesTransformation, StringQuantilesTransformation)
    ):
        # There were too few values for quantiles; now there may be enough.
        possible = _of_quantiles(transformer.data_type, stats, space)
        return isinstance(possible, (IdentityTransformation, EmptyTransformation)) and space.covers(stats)
    if transformer.kind == LINEAR and isinstance(space, EmptyTransformation):
        return False
    data_type = getattr(space, "data_type", transformer.data_type)
    return data_type == transformer.data_type and space.covers(stats)


def needs_quantiles(transformer: Transformer, space: Transformation | None) -> bool:
    """Say whether quantiles must be estimated from the data, unless the owner declares some.

    Args:
        transformer: How the column is indexed.
        space: The column's transformation so far, if any.
    """
    made = isinstance(space, (NumericQuantilesTransformation, StringQuantilesTransformation))
    return transformer.kind == QUANTILES and not made


def _of_quantiles(data_type: str, stats: ColumnStats, previous: Transformation | None) -> Transformation:
    """The transformation of declared or estimated quantiles; one that holds everything when they are too few."""
    if data_type == STRING:
        if stats.declared.quantiles is not None:
            return StringQuantilesTransformation(tuple(str(q) for q in stats.declared.quantiles))
        texts = [quantile for quantile in stats.estimated or () if isinstance(quantile, str)]
        return StringQuantilesTransformation.of_estimate(texts) or EmptyTransformation()
    if stats.declared.quantiles is not None:
        return NumericQuantilesTransformation(tuple(float(q) for q in stats.declared.quantiles), data_type)
    numbers = [quantile for quantile in stats.estimated or () if not isinstance(quantile, str)]
    # The ends may lie within the error of an estimate, which then shows one value only.
    ends = _hull(_range_of(previous, data_type), _typed(stats.span, data_type))
    enough = NumericQuantilesTransformation.of_estimate([*numbers, *(stats.span or ())], data_type)
    return enough or NumericQuantilesTransformation.of_estimate(ends or (), data_type) or _of_range(ends, data_type)


def _typed(ends: tuple[int | float, int | float] | None, data_type: str) -> tuple[int | float, int | float] | None:
    return None if ends is None else (number.typed(ends[0], data_type), number.typed(ends[1], data_type))


def _hull(
    one: tuple[int | float, int | float] | None, other: tuple[int | float, int | float] | None
) -> tuple[int | float, int | float] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def _range_of(previous: Transformation | None, data_type: str) -> tuple[int | float, int | float] | None:
    if isinstance(previous, LinearTransformation):
        return previous.minimum, previous.maximum
    if isinstance(previous, (IdentityTransformation, LegacyZeroTransformation)) and previous.value is not None:
        value = number.typed(previous.value, data_type)
        return value, value
    return None


def _of_range(ends: tuple[int | float, int | float] | None, data_type: str) -> Transformation:
    if ends is None or ends[0] == ends[1]:
        return IdentityTransformation(None if ends is None else ends[0], data_type)
    low, high = number.separated(number.clamp(ends[0], data_type), number.clamp(ends[1], data_type), data_type)
    return LinearTransformation(low, high, low, data_type)
