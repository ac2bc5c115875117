"""Query results as commands print them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sql_ext.commands.output import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class QueryResult:
    """Rows of one query.

    Attributes:
        columns: unique names; a repeated name gets a number as suffix.
        rows: values by these names; can be iterated once.
        cut_at: the limit if there are more rows; None otherwise.
    """

    columns: tuple[str, ...]
    rows: Iterable[Row]
    cut_at: int | None = None

    @classmethod
    def of(cls, data: DataFrame, limit: int | None) -> QueryResult:
        """Reads the rows of a query.

        Args:
            data: the query.
            limit: maximum number of rows; None = all, fetched one partition at a time.
        """
        columns = _unique(data.columns)
        if limit is None:
            return cls(columns, (dict(zip(columns, row, strict=True)) for row in data.toLocalIterator()))
        first_rows = data.take(limit + 1)
        rows = [dict(zip(columns, row, strict=True)) for row in first_rows[:limit]]
        return cls(columns, rows, limit if len(first_rows) > limit else None)


def _unique(names: list[str]) -> tuple[str, ...]:
    unique: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name
        while candidate in unique:
            number += 1
            candidate = f"{name}_{number}"
        unique[candidate] = None
    return tuple(unique)
