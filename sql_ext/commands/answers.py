"""What a query answers, as commands print it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from sql_ext.commands.output import Row


@dataclass(frozen=True)
class Answer:
    """Rows of one query.

    Attributes:
        columns: names, each once: a repeated one carries its number.
        rows: by these names; may be read once.
        cut_at: the limit, where there are more rows than it allows.
    """

    columns: tuple[str, ...]
    rows: Iterable[Row]
    cut_at: int | None = None

    @classmethod
    def of(cls, data: DataFrame, limit: int | None) -> Answer:
        """Reads the rows.

        Args:
            data: the query.
            limit: most rows that are read; None = all, a part after the other.
        """
        columns = _unique(data.columns)
        if limit is None:
            return cls(columns, (dict(zip(columns, row, strict=True)) for row in data.toLocalIterator()))
        found = data.take(limit + 1)
        rows = [dict(zip(columns, row, strict=True)) for row in found[:limit]]
        return cls(columns, rows, limit if len(found) > limit else None)


def _unique(names: list[str]) -> tuple[str, ...]:
    taken: dict[str, None] = {}
    for name in names:
        number, wanted = 1, name
        while wanted in taken:
            number += 1
            wanted = f"{name}_{number}"
        taken[wanted] = None
    return tuple(taken)
