"""The part of Spark's DataFrames that the vacuum, the purge and the protections use, over lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from simulation.surroundings.expressions import Aggregate, Expression, Functions, RowValues, expression


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
