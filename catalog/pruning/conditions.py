"""Translation of a tree of conditions into a union of boxes in the space of a revision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.pruning.literals import Bounds, bounds, is_comparable
from otree.data_types import format_data_type
from otree.hash_types import hash_type
from otree.region import Box, Interval, Region
from otree.revision import Revision
from otree.transformation import Transformation, Value
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# Of a longer list, only the smallest and the largest value are used.
_LONGEST_LIST = 1_000
# Maximum pairs of boxes to compare for one revision, which take about half a second. Further conditions are ignored.
_MOST_PAIRS = 100_000
_LAST_CHARACTER = 0x10FFFF

Node = Mapping[str, Any]
"""A condition from the shim: an ``operator``, with conditions in ``of``, or ``values`` for a column or hash."""


@dataclass(frozen=True)
class Conditions:
    """Translates conditions into regions of one revision.

    Every row that makes the condition true is in the region. The region of an unsupported condition is the whole space.

    Attributes:
        revision: the revision.
        hash_types: the types by which its columns were hashed; None if another writer created the revision.
    """

    revision: Revision
    hash_types: str | None

    def region(self, node: Node) -> Region:
        """Returns the region of the rows that make ``node`` true."""
        return self._region(node, negated=False)

    def _region(self, node: Node, *, negated: bool) -> Region:
        """Returns the region of the rows that make ``node`` true, or false if ``negated``.

        A row for which it is neither, because of a null, may be missing from both.
        """
        # Trees may be deeper than Python's stack, so this uses an explicit stack.
        todo: list[tuple[Node, bool, bool]] = [(node, negated, False)]
        done: list[Region] = []
        pairs_left = _MOST_PAIRS
        while todo:
            node, negated, is_expanded = todo.pop()
            operator = node["operator"]
            if operator == "not":
                todo.append((node["of"][0], not negated, False))
            elif operator not in ("and", "or"):
                done.append(self._leaf(node, negated))
            elif not is_expanded:
                todo.append((node, negated, True))
                todo += [(part, negated, False) for part in node["of"]]
            else:
                first = len(done) - len(node["of"])
                # "not (a and b)" is "not a or not b", even if one of them is null.
                is_union = (operator == "or") != negated
                parts, done = done[first:], done[:first]
                if is_union:
                    done.append(Region.union(parts))
                else:
                    intersection, pairs = Region.intersection(parts, self.revision.dimensions, pairs_left)
                    done.append(intersection)
                    pairs_left -= pairs
        return done[0]

    def _leaf(self, node: Node, negated: bool) -> Region:
        if node["operator"] in ("never", "all"):
            return Region.nothing() if (node["operator"] == "never") != negated else self._all
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
        operator, values = node["operator"], node["values"]
        if len(values) != 1 or values[0] is None:
            return self._all
        # A hash is never null, so both operators are equivalent.
        operator = "=" if operator == "<=>" else operator
        if negated:
            operator = _OPPOSITE.get(operator, "")
        value = int(values[0])
        if operator not in ("<", "<=", ">", ">=", "="):
            return self._all
        first = {">=": value, ">": value + 1, "=": value}.get(operator, MIN_WEIGHT)
        last = {"<=": value, "<": value - 1, "=": value}.get(operator, MAX_WEIGHT)
        return Region.of([Box(((0.0, 1.0),) * self.revision.dimensions, first, last)])

    def _hashes_as(self, types: Sequence[str]) -> bool:
        """Whether the current column types hash as they did when the revision was created; a widened type does not."""
        if self.hash_types is not None:
            return self.hash_types == ";".join(hash_type(sql_type) for sql_type in types)
        # Other writers store only the format's type names, which do not distinguish decimals of different size.
        return all(
            transformer.data_type != "DecimalDataType" and format_data_type(sql_type) == transformer.data_type
            for sql_type, transformer in zip(types, self.revision.transformers, strict=True)
        )

    # -------------------------------------------------------------------------------------------- columns

    def _column(self, node: Node, negated: bool) -> Region:
        dimensions = [i for i, t in enumerate(self.revision.transformers) if t.column == node["column"]]
        if not dimensions:
            return self._all
        at, operator, values = dimensions[0], node["operator"], node["values"]
        if operator == "<=>" and values[0] is None:
            operator = "is_null"
        if operator in ("is_null", "is_not_null"):
            return self._nulls(at, node) if (operator == "is_null") != negated else self._all
        if operator == "<=>" and negated:
            # It is false for every null too: unlike "=", it never returns null.
            return Region.union([self._nulls(at, node), self._compared(at, node, "=", values, negated=True)])
        if values and all(value is None for value in values):  # nothing compares with null
            return Region.nothing()
        return self._compared(at, node, "=" if operator == "<=>" else operator, values, negated=negated)

    def _nulls(self, at: int, node: Node) -> Region:
        # A cast can turn a value into null.
        return self._all if "as" in node else self._boxes(at, [self.revision.transformations[at].null_interval])

    def _compared(self, at: int, node: Node, operator: str, values: Sequence[Any], *, negated: bool) -> Region:
        """Returns the region of the non-null values for which a comparison is true, or false if ``negated``."""
        if negated:
            is_flag = node["type"] == "boolean" and "as" not in node
            if operator == "=" and is_flag and isinstance(values[0], bool):
                values = [not values[0]]
            elif operator in _OPPOSITE:
                operator = _OPPOSITE[operator]
            else:
                return self._all
        sides = self._sides(at, operator, [value for value in values if value is not None], node)
        return self._all if sides is None else self._boxes(at, sides)

    def _boxes(self, at: int, sides: Sequence[Interval]) -> Region:
        whole = ((0.0, 1.0),) * self.revision.dimensions
        return Region.of([Box((*whole[:at], side, *whole[at + 1 :])) for side in sides])

    def _sides(self, at: int, operator: str, values: Sequence[Any], node: Node) -> list[Interval] | None:
        """Returns the intervals of one dimension that contain all values that match the comparison; None if unknown."""
        transformation, data_type = self.revision.transformations[at], self.revision.transformers[at].data_type
        column_type, compared_as = node["type"], node.get("as", node["type"])
        if operator not in _INTERVALS or not is_comparable(column_type, data_type):
            return None
        brackets = [bounds(value, column_type, compared_as, data_type) for value in values]
        known = [bracket for bracket in brackets if bracket is not None]
        if len(known) != len(brackets):
            return None
        try:
            return [_INTERVALS[operator](transformation, bracket) for bracket in _fewer(known)]
        except TypeError:  # the transformation has values of another type
            return None


def _prefixed(transformation: Transformation, bracket: Bounds) -> Interval:
    prefix = bracket[0]
    if not isinstance(prefix, str) or not prefix:
        return 0.0, 1.0
    return transformation.interval(prefix, _successor(prefix))


def _successor(prefix: str) -> str | None:
    """Returns a string above all strings with this prefix, in the order of code points; None if there is none."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1])
        if code < _LAST_CHARACTER:
            # The code points in between are surrogates, which are not characters.
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
    """Returns the brackets of a list; one bracket around all of them if the list is long and ordered."""
    if len(brackets) <= _LONGEST_LIST or any(_is_nan(value) for bracket in brackets for value in bracket):
        return brackets
    lows: list[Any] = [low for low, _ in brackets]
    highs: list[Any] = [high for _, high in brackets]
    return [(min(lows), max(highs))]


def _is_nan(value: Value) -> bool:
    return value != value
