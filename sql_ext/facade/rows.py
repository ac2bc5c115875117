"""Rows of procedures as typed values."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timezone
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from procedures.declare.result_rows import rows_as_html

_Row = TypeVar("_Row")


class ResultRows(list[_Row]):
    """A list of rows that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return rows_as_html(self)  # type: ignore[arg-type]


def typed_rows(kind: type[_Row], data: DataFrame) -> list[_Row]:
    """Reads the rows of a report.

    Args:
        kind: dataclass with a field for each column.
        data: result of a procedure.
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return ResultRows(kind(**{name: _value(row[name]) for name in names}) for row in data.collect())


def _value(value: Any) -> Any:
    # Spark returns timestamps as local time without a zone.
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
