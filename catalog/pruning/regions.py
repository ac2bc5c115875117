"""Regions of the space of a revision that contain the rows of a condition: unions of boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.predicates.conditions import Comparison, Unknown, visit
from catalog.predicates.index_conditions import IndexCondition, RowHash, StoredColumn
from catalog.predicates.operators import NEGATED, after_prefix
from catalog.pruning.literals import Bounds, bounds, is_comparable
from otree.data_types import format_data_type
from otree.hash_types import hash_type
from otree.region import Box, Interval, Region
from otree.revision import Revision
from otree.transformation import HashTransformation, Transformation, Value
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

# Of a longer list, only the smallest and the largest value are used.
_LONGEST_LIST = 1_000
# Maximum pairs of boxes to compare for one revision, which take about half a second. Further conditions are ignored.
_MOST_PAIRS = 100_000


@dataclass(frozen=True)
class Regions:
    """Translates conditions into regions of one revision.

    Every row that makes the condition true is in the region. The region of an unsupported condition is the whole space.

    Attributes:
        revision: the revision.
        hash_types: the types by which its columns were hashed; None if another writer created the revision.
    """

    revision: Revision
    hash_types: str | None

    def region(self, condition: IndexCondition) -> Region:
        """Returns the region of the rows that make a condition true.

        A row for which a part of it is neither true nor false, because of a null, may be missing.
        """
        pairs_left = _MOST_PAIRS

        def intersection(parts: tuple[Region, ...]) -> Region:
            nonlocal pairs_left
            # In the order of evaluation, in which the pairs are spent.
            region, pairs = Region.intersection(parts[::-1], self.revision.dimensions, pairs_left)
            pairs_left -= pairs
            return region

        return visit(condition, self._leaf, intersection, Region.union)

    def _leaf(self, leaf: Comparison[StoredColumn | RowHash] | Unknown, negated: bool) -> Region:
        if isinstance(leaf, Unknown):
            return self._all
        operator = leaf.operator
        if operator == "<>":
            operator, negated = "=", not negated
        if isinstance(leaf.column, RowHash):
            return self._weights(leaf.column, operator, leaf.values, negated)
        return self._column(leaf.column, operator, leaf.values, negated)

    @property
    def _all(self) -> Region:
        return Region.all(self.revision.dimensions)

    # -------------------------------------------------------------------------------------------- weights

    def _weights(self, of: RowHash, operator: str, values: Sequence[Any], negated: bool) -> Region:
        if of.columns != tuple(self.revision.columns) or not self._hashes_as(of.types):
            return self._all
        if len(values) != 1 or values[0] is None:
            return self._all
        # A hash is never null, so both operators are equivalent.
        operator = "=" if operator == "<=>" else operator
        if negated:
            operator = NEGATED.get(operator, "")
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

    def _column(self, column: StoredColumn, operator: str, values: Sequence[Any], negated: bool) -> Region:
        dimensions = [i for i, t in enumerate(self.revision.transformers) if t.column == column.name]
        if not dimensions:
            return self._all
        at = dimensions[0]
        if operator == "<=>" and values[0] is None:
            operator = "is_null"
        if operator in ("is_null", "is_not_null"):
            return self._nulls(at, column) if (operator == "is_null") != negated else self._all
        if operator == "<=>" and negated:
            # It is false for every null too: unlike "=", it never returns null.
            return Region.union([self._nulls(at, column), self._compared(at, column, "=", values, negated=True)])
        if values and all(value is None for value in values):  # nothing compares with null
            return Region.nothing()
        return self._compared(at, column, "=" if operator == "<=>" else operator, values, negated=negated)

    def _nulls(self, at: int, column: StoredColumn) -> Region:
        if column.cast_type is not None:  # a cast can turn a value into null
            return self._all
        return self._boxes(at, [self.revision.transformations[at].null_interval])

    def _compared(
        self, at: int, column: StoredColumn, operator: str, values: Sequence[Any], *, negated: bool
    ) -> Region:
        """Returns the region of the non-null values for which a comparison is true, or false if ``negated``."""
        if negated:
            is_flag = column.sql_type == "boolean" and column.cast_type is None
            if operator == "=" and is_flag and isinstance(values[0], bool):
                values = [not values[0]]
            elif operator in NEGATED:
                operator = NEGATED[operator]
            else:
                return self._all
        sides = self._sides(at, operator, [value for value in values if value is not None], column)
        return self._all if sides is None else self._boxes(at, sides)

    def _boxes(self, at: int, sides: Sequence[Interval]) -> Region:
        whole = ((0.0, 1.0),) * self.revision.dimensions
        return Region.of([Box((*whole[:at], side, *whole[at + 1 :])) for side in sides])

    def _sides(self, at: int, operator: str, values: Sequence[Any], column: StoredColumn) -> list[Interval] | None:
        """Returns the intervals of one dimension that contain all values that match the comparison; None if unknown."""
        transformation, data_type = self.revision.transformations[at], self.revision.transformers[at].data_type
        if operator not in _INTERVALS or not is_comparable(column.sql_type, data_type):
            return None
        is_ascii = all(value.isascii() for value in values if isinstance(value, str))
        if self.hash_types is None and isinstance(transformation, HashTransformation) and not is_ascii:
            # Other writers hash the bytes of a text in the charset of their JVM.
            return None
        brackets = [bounds(value, column.sql_type, column.compared_as, data_type) for value in values]
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
    return transformation.interval(prefix, after_prefix(prefix))


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
