"""Where in a revision's space the rows of a query can lie: a tree of conditions as a union of boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from catalog.literals import Bounds, bounds, is_comparable
from catalog.properties import hash_type
from otree.region import MOST_BOXES, Box, Interval, Region
from otree.revision import Revision
from otree.transformation import Transformation, Value
from otree.transformer import format_data_type
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# A longer list is judged by its smallest and largest value alone.
_LONGEST_LIST = 1_000
_LAST_CHARACTER = 0x10FFFF

Node = Mapping[str, Any]
"""A condition as the shim sends it: an ``operator``, and conditions in ``of`` or ``values`` for a column or hash."""


@dataclass(frozen=True)
class Conditions:
    """Translates conditions into regions of one revision.

    A row that makes the condition true lies in the region; what is not understood is the whole space.

    Attributes:
        revision: the revision.
        hash_types: how its columns hashed when it was made, None when another writer made it.
    """

    revision: Revision
    hash_types: str | None

    def region(self, node: Node, negated: bool = False) -> Region:
        """Returns where the rows lie that make ``node`` true, or false when ``negated``."""
        operator = node["operator"]
        if operator == "not":
            return self.region(node["of"][0], not negated)
        if operator in ("and", "or"):
            parts = [self.region(part, negated) for part in node["of"]]
            # "not (a and b)" is "not a or not b", also where one of them is null.
            join = Region.join if (operator == "or") != negated else Region.meet
            return reduce(join, parts)
        if operator in ("never", "all"):
            return Region.nothing() if (operator == "never") != negated else self._all
        if "hash_of" in node:
            return self._weights(node, negated)
        if "column" in node:
            return self._column(node, negated)
        return self._all

    @property
    def _all(self) -> Region:
        return Region.all(self.revision.dimensions)

    # -------------------------------------------------------------------------------------------- weights

    def _weights(self, node: Node, negated: bool) -> Region:
        if node["hash_of"] != list(self.revision.columns) or not self._hashes_as(node["types"]):
            return self._all
        found = _comparison(node, negated)
        if found is None or found[0] not in (*_OPPOSITE, "=") or len(found[1]) != 1 or found[1][0] is None:
            return self._all
        operator, value = found[0], int(found[1][0])
        first = {">=": value, ">": value + 1, "=": value}.get(operator, MIN_WEIGHT)
        last = {"<=": value, "<": value - 1, "=": value}.get(operator, MAX_WEIGHT)
        return Region.of([Box(((0.0, 1.0),) * self.revision.dimensions, first, last)])

    def _hashes_as(self, types: Sequence[str]) -> bool:
        """Whether today's column types hash as they did when the revision was made (a widened type does not)."""
        if self.hash_types is not None:
            return self.hash_types == ";".join(hash_type(sql_type) for sql_type in types)
        # Another writer leaves only the format's names, which do not tell decimals of different size apart.
        return all(
            transformer.data_type != "DecimalDataType" and format_data_type(sql_type) == transformer.data_type
            for sql_type, transformer in zip(types, self.revision.transformers, strict=True)
        )

    # -------------------------------------------------------------------------------------------- columns

    def _column(self, node: Node, negated: bool) -> Region:
        column, found = node["column"], _comparison(node, negated)
        dimensions = [i for i, t in enumerate(self.revision.transformers) if t.column == column]
        if found is None or not dimensions:
            return self._all
        operator, values = found
        if operator not in ("is_null", "is_not_null"):
            values = [value for value in values if value is not None]
            if not values:  # nothing compares with null
                return Region.nothing()
        at = dimensions[0]
        sides = self._sides(at, operator, values, node)
        if sides is None:
            return self._all
        whole = ((0.0, 1.0),) * self.revision.dimensions
        return Region.of([Box((*whole[:at], side, *whole[at + 1 :])) for side in sides])

    def _sides(self, at: int, operator: str, values: Sequence[Any], node: Node) -> list[Interval] | None:
        """Intervals of one dimension that hold the values which meet the comparison; None = no idea."""
        transformation, data_type = self.revision.transformations[at], self.revision.transformers[at].data_type
        column_type, compared_as = node["type"], node.get("as", node["type"])
        if operator == "is_null":
            # A cast can make a null of a value.
            return [(transformation.null_coordinate,) * 2] if "as" not in node else None
        if not is_comparable(column_type, data_type):
            return None
        brackets = [bounds(value, column_type, compared_as, data_type) for value in values]
        known = [bracket for bracket in brackets if bracket is not None]
        if len(known) != len(brackets) or operator not in _INTERVALS:
            return None
        try:
            return _joined([_INTERVALS[operator](transformation, bracket) for bracket in _fewer(known)])
        except TypeError:  # the transformation holds values of another kind
            return None


def _comparison(node: Node, negated: bool) -> tuple[str, Sequence[Any]] | None:
    """The operator and values of a comparison or of its negation; None = prunes nothing."""
    operator, values = node["operator"], node["values"]
    if operator == "<=>":
        operator = "is_null" if values[0] is None else "="
    if not negated:
        return operator, values
    if operator in _OPPOSITE:
        return _OPPOSITE[operator], values
    if operator == "is_not_null":
        return "is_null", values
    if operator == "=" and node.get("type") == "boolean" and isinstance(values[0], bool):
        return "=", [not values[0]]
    return None


def _prefixed(transformation: Transformation, bracket: Bounds) -> Interval:
    prefix = bracket[0]
    if not isinstance(prefix, str) or not prefix:
        return 0.0, 1.0
    return transformation.interval(prefix, _successor(prefix))


def _successor(prefix: str) -> str | None:
    """A text that is not below any text with this prefix, in the order of code points; None = there is none."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1])
        if code < _LAST_CHARACTER:
            # What lies between are surrogates, which are no characters.
            following = 0xE000 if code + 1 == 0xD800 else code + 1
            return prefix[: end - 1] + chr(following)
    return None


_INTERVALS: Mapping[str, Callable[[Transformation, Bounds], Interval]] = {
    "=": lambda space, bracket: space.interval(*bracket),
    "in": lambda space, bracket: space.interval(*bracket),
    "<": lambda space, bracket: space.interval(None, bracket[1]),
    "<=": lambda space, bracket: space.interval(None, bracket[1]),
    ">": lambda space, bracket: space.interval(bracket[0], None),
    ">=": lambda space, bracket: space.interval(bracket[0], None),
    "starts_with": _prefixed,
}


def _fewer(brackets: Sequence[Bounds]) -> Sequence[Bounds]:
    """The brackets of a list, or one around them where the list is long and has an order."""
    if len(brackets) <= _LONGEST_LIST or any(_is_nan(value) for bracket in brackets for value in bracket):
        return brackets
    lows: list[Any] = [low for low, _ in brackets]
    highs: list[Any] = [high for _, high in brackets]
    return [(min(lows), max(highs))]


def _is_nan(value: Value) -> bool:
    return value != value


def _joined(sides: Sequence[Interval]) -> list[Interval]:
    """The union of intervals as at most ``MOST_BOXES`` of them, closing the smallest gaps first."""
    joined: list[Interval] = []
    for low, high in sorted(sides):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(high, joined[-1][1])
        else:
            joined.append((low, high))
    if len(joined) <= MOST_BOXES:
        return joined
    gaps = sorted(range(1, len(joined)), key=lambda i: joined[i][0] - joined[i - 1][1])
    starts = sorted([0, *gaps[len(joined) - MOST_BOXES :]])
    ends = [*(start - 1 for start in starts[1:]), len(joined) - 1]
    return [(joined[start][0], joined[end][1]) for start, end in zip(starts, ends, strict=True)]
