"""Conditions of queries, as far as ranges of values in files decide about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

EQUAL = "="
IS_NULL = "is null"
IS_NOT_NULL = "is not null"
ORDERED = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Comparison:
    """A comparison of a column.

    Attributes:
        column: name of the column.
        operator: ``=`` (one of the values), ``<``, ``<=``, ``>``, ``>=``, ``is null`` or ``is not null``.
        values: SQL texts of literals, or after ``bound`` doubles or bytes in the column's order.
    """

    column: str
    operator: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Unusable:
    """A condition that cannot select files.

    Attributes:
        text: the condition as SQL.
        reason: why it cannot.
    """

    text: str
    reason: str


@dataclass(frozen=True)
class AllOf:
    """A conjunction; without parts, it is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    """A disjunction."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Comparison | Unusable | AllOf | AnyOf


def leaves(condition: Condition) -> Iterator[Comparison | Unusable]:
    """Yields the comparisons and the unusable conditions."""
    if isinstance(condition, (AllOf, AnyOf)):
        for part in condition.parts:
            yield from leaves(part)
    else:
        yield condition


def deciding_comparisons(condition: Condition) -> Iterator[Comparison]:
    """Yields the comparisons that can exclude a file; a disjunction with an unusable part excludes none."""
    match condition:
        case Comparison():
            yield condition
        case AllOf(parts):
            for part in parts:
                yield from deciding_comparisons(part)
        case AnyOf(parts):
            alternatives = [list(deciding_comparisons(part)) for part in parts]
            if all(alternatives):
                for comparisons in alternatives:
                    yield from comparisons
        case Unusable():
            pass


def bound(condition: Condition, value_of: Callable[[str, str], Any]) -> Condition:
    """Replaces literals by values.

    Args:
        condition: as parsed.
        value_of: returns the value of a literal for a column; None if there is none.
    """
    match condition:
        case Comparison(column, _, texts) if texts:
            values = tuple(value_of(column, text) for text in texts)
            if any(value is None for value in values):
                return Unusable(
                    f"{column} {condition.operator} {', '.join(texts)}", "a literal has no value as the column's type"
                )
            return replace(condition, values=values)
        case AllOf(parts):
            return AllOf(tuple(bound(part, value_of) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(bound(part, value_of) for part in parts))
    return condition
