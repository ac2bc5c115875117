"""The part of Spark's columns and functions that the vacuum, the purge and the protections use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

RowValues = dict[str, Any]


class Expression:
    """A column: a function of the values of a row; None is NULL."""

    def __init__(self, of: Callable[[RowValues], Any], name: str = "", conditional: bool = False) -> None:
        self.of = of
        self.name = name
        self._is_conditional = conditional

    def alias(self, name: str) -> Expression:
        return Expression(self.of, name)

    def cast(self, _: str) -> Expression:
        return self

    def try_cast(self, kind: str) -> Expression:
        of = self.of
        return (
            Expression(lambda row: None if of(row) is None else int(of(row)), self.name) if kind == "bigint" else self
        )

    def desc(self) -> Expression:
        of = self.of
        return Expression(lambda row: -of(row), self.name)

    def isin(self, *values: Any) -> Expression:
        of, known = self.of, frozenset(values[0] if len(values) == 1 and isinstance(values[0], list) else values)
        return Expression(lambda row: of(row) in known)

    def isNotNull(self) -> Expression:  # noqa: N802
        of = self.of
        return Expression(lambda row: of(row) is not None)

    def rlike(self, pattern: str) -> Expression:
        of, search = self.of, re.compile(pattern).search
        return Expression(lambda row: search(of(row)) is not None)

    def startswith(self, start: str) -> Expression:
        of = self.of
        return Expression(lambda row: of(row).startswith(start))

    def when(self, condition: Expression, value: Any) -> Expression:
        return self._else(condition, value, conditional=True)

    def otherwise(self, value: Any) -> Expression:
        return self._else(None, value, conditional=False)

    def _else(self, condition: Expression | None, value: Any, *, conditional: bool) -> Expression:
        of, chosen = self.of, expression(value, literal=True).of
        holds = None if condition is None else condition.of

        def choose(row: RowValues) -> Any:
            result = of(row)
            if result is not _NOTHING:
                return result
            return chosen(row) if holds is None or holds(row) else _NOTHING

        return Expression(choose, self.name, conditional)

    def value(self, row: RowValues) -> Any:
        """The value in a row."""
        result = self.of(row)
        return None if result is _NOTHING else result

    def _compared(self, other: Any, compare: Callable[[Any, Any], bool]) -> Expression:
        one, two = self.of, expression(other, literal=True).of

        def compared(row: RowValues) -> Any:
            left, right = one(row), two(row)
            return None if left is None or right is None else compare(left, right)

        return Expression(compared)

    def __getitem__(self, key: str) -> Expression:
        of = self.of
        return Expression(lambda row: (of(row) or {}).get(key), key)

    def __lt__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a <= b)

    def __ge__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a >= b)

    def __gt__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a > b)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared(other, lambda a, b: a == b)

    __hash__ = object.__hash__

    def __and__(self, other: Expression) -> Expression:
        one, two = self.of, other.of
        return Expression(lambda row: bool(one(row)) and bool(two(row)))

    def __or__(self, other: Expression) -> Expression:
        one, two = self.of, other.of
        return Expression(lambda row: bool(one(row)) or bool(two(row)))

    def __invert__(self) -> Expression:
        of = self.of

        def inverted(row: RowValues) -> Any:
            value = of(row)
            return None if value is None else not value

        return Expression(inverted)


_NOTHING = object()


class Aggregate:
    """A value of many rows."""

    def __init__(self, of: Callable[[Sequence[RowValues]], Any], name: str = "value") -> None:
        self.of = of
        self.name = name

    def alias(self, name: str) -> Aggregate:
        return Aggregate(self.of, name)


def expression(value: Any, *, literal: bool = False) -> Expression:
    """A column of a name, or of a value."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str) and not literal:
        if value.endswith("IS NULL"):
            column = value.split()[0]
            return Expression(lambda row: row[column] is None)
        if value.endswith("IS NOT NULL"):
            column = value.split()[0]
            return Expression(lambda row: row[column] is not None)
        if value.endswith(" <> ''"):
            column = value.split()[0]
            return Expression(lambda row: row[column] != "")
        if match := re.fullmatch(r"(\w+) = '(.*)'", value):
            column, text = match.groups()
            return Expression(lambda row: row[column] == text)
        return Expression(lambda row: row[value], value)
    return Expression(lambda _: value)


class Functions:
    """Stands for ``pyspark.sql.functions``."""

    @staticmethod
    def col(name: str) -> Expression:
        return Expression(lambda row: row[name], name)

    @staticmethod
    def lit(value: Any) -> Expression:
        return Expression(lambda _: value)

    @staticmethod
    def when(condition: Expression, value: Any) -> Expression:
        return Expression(lambda _: _NOTHING, conditional=True).when(condition, value)

    @staticmethod
    def coalesce(*values: Expression) -> Expression:
        ofs = [expression(value).of for value in values]
        return Expression(lambda row: next((v for of in ofs if (v := of(row)) is not None), None))

    @staticmethod
    def try_url_decode(column: Expression) -> Expression:
        return column

    @staticmethod
    def replace(column: str, *_: Expression) -> Expression:
        return Functions.col(column)

    @staticmethod
    def regexp_replace(column: Expression, *_: str) -> Expression:
        return column

    @staticmethod
    def count(_: Any) -> Aggregate:
        return Aggregate(len)

    @staticmethod
    def sum(name: str) -> Aggregate:
        return Aggregate(lambda rows: sum(row[name] for row in rows) if rows else None)

    @staticmethod
    def max(name: str) -> Aggregate:
        return Aggregate(lambda rows: max((row[name] for row in rows), default=None))
