"""Coordinates of values by the hash of their text."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import ClassVar

from otree import format_json
from otree.transformation.base import CLASS_PREFIX, ColumnStats, Transformation, Value
from otree.transformation.kind import Kind

HASH_CLASS = CLASS_PREFIX + "HashTransformation"
HASH_SEED = 0x3C074A61

_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class HashTransformation(Transformation):
    """The lower 31 bits of a Murmur hash of the value's text, scaled to [0, 1].

    Values must be of the column's own type: text and bytes as they are, numbers (and times and booleans, which are
    numbers here) by the text that Java's `toString` gives them.

    Attributes:
        null_value: Whole number whose decimal text stands for null; None when the writer did not record it.

    Source:
        Index format, section 4.
    """

    null_value: int | None

    @classmethod
    def for_column(cls, column: str) -> "HashTransformation":
        """Return the transformation of a new column; null gets a place that depends on the column's name only."""
        unsigned = murmur3_32(column.encode("utf-8", "replace"), HASH_SEED)
        return cls(unsigned - (1 << 32) if unsigned >> 31 else unsigned)

    @cached_property
    def _null_coordinate(self) -> float:
        return 0.0 if self.null_value is None else _coordinate_of(str(self.null_value).encode("ascii"))

    @property
    def null_interval(self) -> tuple[float, float]:
        """Where nulls may lie: anywhere when the writer did not record its choice."""
        return (0.0, 1.0) if self.null_value is None else (self._null_coordinate, self._null_coordinate)

    def coordinate(self, value: Value) -> float:
        """Return the coordinate in [0, 1] of a value, None being null.

        A decimal must have the scale of its column, and a single is hashed by the text of its own digits: give that.
        """
        if value is None:
            return self._null_coordinate
        content = _bytes_of(value)
        if content is not None:
            return _coordinate_of(content)
        return _coordinate_of((java_text(value) if isinstance(value, float) else str(value)).encode("ascii"))

    def interval(self, lower: Value, upper: Value) -> tuple[float, float]:
        """Return the point of a single value, and the whole axis for every other range: a hash keeps no order.

        Fractional numbers are the whole axis, too: equal ones may have different texts (0.0 and -0.0, 1.0 and 1.00).
        """
        if lower is None or upper is None or type(lower) is not type(upper) or lower != upper:
            return 0.0, 1.0
        content = _bytes_of(lower)
        if content is None:
            return 0.0, 1.0
        point = _coordinate_of(content)
        return point, point

    def covers(self, stats: ColumnStats) -> bool:  # noqa: ARG002 - no data is refused
        """Say yes: every value has a hash."""
        return True

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object."""
        recorded: dict[str, object] = {} if self.null_value is None else {"nullValue": self.null_value}
        return {"className": HASH_CLASS, **recorded}

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "HashTransformation":
        """Read the format's JSON object; the null value may be absent.

        Raises:
            IndexFormatError: If the null value is no 32-bit whole number.
        """
        if node.get("nullValue") is None:
            return cls(None)
        return cls(format_json.whole_field(node, "nullValue", format_json.INT_BOUNDS))


class HashingKind(Kind):
    """The kind of strings and binaries by default; it accepts every type."""

    name: ClassVar[str] = "hashing"
    transformer_classes: ClassVar[tuple[str, ...]] = (CLASS_PREFIX + "HashTransformer",)
    transformations: ClassVar[Mapping[str, type[Transformation]]] = {HASH_CLASS: HashTransformation}

    def is_extension(self, data_type: str) -> bool:
        """Say yes for dates and timestamps, which other writers do not hash."""
        return data_type in ("DateDataType", "TimestampDataType")

    def make(self, column: str, data_type: str, stats: ColumnStats, previous: Transformation | None) -> Transformation:  # noqa: ARG002 - hashes hold all values
        """See `Kind.make`."""
        return previous if isinstance(previous, HashTransformation) else HashTransformation.for_column(column)


def java_text(number: float) -> str:
    """Return a double as Java's `Double.toString` writes it, with the fewest digits that distinguish it.

    Source:
        The specification of `java.lang.Double.toString`. Java before 19 writes a digit too many for a few numbers.
    """
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if math.isinf(number):
        return sign + "Infinity"
    # Java asks for two digits at least, and takes the two that are nearest.
    shortest = Decimal(repr(abs(number))).normalize()
    nearest = Decimal(f"{abs(number):.1e}").normalize() if len(shortest.as_tuple().digits) == 1 else shortest
    _, digits, exponent = nearest.as_tuple()
    text = "".join(map(str, digits))
    # The power of ten of the first digit.
    power = int(exponent) + len(text) - 1 if number else 0
    if not -3 <= power < 7:
        return f"{sign}{text[0]}.{text[1:] or '0'}E{power}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{text}"
    text = text.ljust(power + 1, "0")
    return f"{sign}{text[: power + 1]}.{text[power + 1 :] or '0'}"


def murmur3_32(content: bytes, seed: int) -> int:
    """Return MurmurHash3 (x86, 32 bits) of some bytes, as an unsigned number.

    Args:
        content: The bytes.
        seed: Unsigned 32-bit seed.

    Returns:
        The hash in [0, 2**32).

    Source:
        Austin Appleby's public-domain definition of MurmurHash3_x86_32.
    """
    state = seed
    whole = len(content) // 4 * 4
    for start in range(0, whole, 4):
        state ^= _scrambled(int.from_bytes(content[start : start + 4], "little"))
        state = (_rotated(state, 13) * 5 + 0xE6546B64) & _MASK
    # An empty tail scrambles to zero and does not change the state.
    state ^= _scrambled(int.from_bytes(content[whole:], "little"))
    state ^= len(content) & _MASK
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _scrambled(word: int) -> int:
    return _rotated(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK


def _coordinate_of(content: bytes) -> float:
    return (murmur3_32(content, HASH_SEED) & 0x7FFFFFFF) / 2147483647.0


def _bytes_of(value: Value) -> bytes | None:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        # A lone surrogate is no character; the JVM writes a question mark for it, and so do we.
        return value.encode("utf-8", "replace")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value).encode("ascii")
    return None
