"""The part of Spark's DataFrames that the vacuum, the purge and the protections of the product use, over lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

RowValues = dict[str, Any]


class Row:
    """A row: values by name and by position."""

    __slots__ = ("_names", "_values")

    def __init__(self, values: RowValues, names: Sequence[str]) -> None:
        self._values = values
        self._names = names

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError as error:
            raise AttributeError(name) from error

    def __getitem__(self, key: int | str) -> Any:
        return self._values[self._names[key] if isinstance(key, int) else key]

    def asDict(self) -> RowValues:  # noqa: N802
        return dict(self._values)

    def __iter__(self) -> Iterator[Any]:
        return (self._values[name] for name in self._names)


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


class Frame:
    """Rows with columns."""

    def __init__(self, columns: Sequence[str], rows: Iterable[RowValues]) -> None:
        self.columns = list(columns)
        self.rows = list(rows)

    def where(self, condition: Expression | str) -> Frame:
        holds = expression(condition).of
        return Frame(self.columns, [row for row in self.rows if holds(row)])

    def select(self, *columns: Any) -> Frame:
        chosen: list[tuple[str, Expression]] = []
        for column in columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns:
            if column == "*" and isinstance(column, str):
                chosen += [(name, Functions.col(name)) for name in self.columns]
            else:
                made = expression(column)
                chosen.append((made.name or str(len(chosen)), made))
        names = [name for name, _ in chosen]
        return Frame(names, [{name: made.value(row) for name, made in chosen} for row in self.rows])

    def withColumn(self, name: str, column: Expression) -> Frame:  # noqa: N802
        columns = self.columns if name in self.columns else [*self.columns, name]
        return Frame(columns, [{**row, name: column.value(row)} for row in self.rows])

    def drop(self, *names: str) -> Frame:
        return self.select(*(name for name in self.columns if name not in names))

    def join(self, other: Frame, on: str | list[str], how: str) -> Frame:
        keys = [on] if isinstance(on, str) else on
        known: dict[tuple[Any, ...], list[RowValues]] = {}
        for row in other.rows:
            known.setdefault(tuple(row[key] for key in keys), []).append(row)
        pairs = [(row, known.get(tuple(row[key] for key in keys))) for row in self.rows]
        if how in ("left_anti", "left_semi"):
            return Frame(self.columns, [row for row, found in pairs if (found is None) == (how == "left_anti")])
        more = [name for name in other.columns if name not in keys]
        nothing = dict.fromkeys(more)
        rows = [{**row, **{n: f[n] for n in more}} for row, found in pairs for f in (found or [nothing])]
        return Frame([*self.columns, *more], rows)

    def union(self, other: Frame) -> Frame:
        renamed = [dict(zip(self.columns, (row[n] for n in other.columns), strict=True)) for row in other.rows]
        return Frame(self.columns, [*self.rows, *renamed])

    def distinct(self) -> Frame:
        return Frame(self.columns, {tuple(row[n] for n in self.columns): row for row in self.rows}.values())

    def groupBy(self, *names: str) -> Grouped:  # noqa: N802
        return Grouped(self, names)

    def agg(self, *aggregates: Aggregate) -> Frame:
        return Grouped(self, ()).agg(*aggregates)

    def orderBy(self, *columns: Any) -> Frame:  # noqa: N802
        key = [expression(column) for column in columns]
        return Frame(self.columns, sorted(self.rows, key=lambda row: [made.value(row) for made in key]))

    def limit(self, count: int) -> Frame:
        return Frame(self.columns, self.rows[:count])

    def collect(self) -> list[Row]:
        return [Row(row, self.columns) for row in self.rows]

    def toLocalIterator(self) -> Iterator[Row]:  # noqa: N802
        return iter(self.collect())

    def first(self) -> Row | None:
        return Row(self.rows[0], self.columns) if self.rows else None

    def isEmpty(self) -> bool:  # noqa: N802
        return not self.rows

    def count(self) -> int:
        return len(self.rows)

    def persist(self, *_: Any) -> Frame:
        return self

    def cache(self) -> Frame:
        return self

    def unpersist(self) -> Frame:
        return self


class Grouped:
    """Rows by the values of some columns."""

    def __init__(self, frame: Frame, names: Sequence[str]) -> None:
        self._frame = frame
        self._names = names

    def agg(self, *aggregates: Aggregate) -> Frame:
        groups: dict[tuple[Any, ...], list[RowValues]] = {} if self._names else {(): []}
        for row in self._frame.rows:
            groups.setdefault(tuple(row[name] for name in self._names), []).append(row)
        made = [(a.name if a.name != "value" else f"value{i}", a.of) for i, a in enumerate(aggregates)]
        rows = [
            {**dict(zip(self._names, key, strict=True)), **{name: of(group) for name, of in made}}
            for key, group in groups.items()
        ]
        return Frame([*self._names, *(name for name, _ in made)], rows)
