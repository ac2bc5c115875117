"""What rows of procedures have in common: their fields are the columns in SQL, in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from procedures.declare.html_table import html_table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pyspark.sql import DataFrame, SparkSession

# A field that is not a BIGINT in SQL.
INT: Mapping[str, str] = {"sql": "int"}

_SQL_TYPES: Mapping[Any, str] = {
    int: "bigint",
    float: "double",
    bool: "boolean",
    str: "string",
    datetime: "timestamp_ltz",
    list[str]: "array<string>",
    dict[str, str]: "map<string,string>",
    dict[str, str | None]: "map<string,string>",
    dict[int, int]: "map<bigint,bigint>",
}


def ddl_of(kind: type[DataclassInstance]) -> str:
    """Returns the columns of a row as DDL.

    Args:
        kind: class of the row.
    """
    hints = get_type_hints(kind)
    return ", ".join(f"{f.name} {f.metadata.get('sql') or _sql_type(hints[f.name])}" for f in fields(kind))


def _sql_type(hint: Any) -> str:
    """Returns the SQL type of a field; a union with None is a nullable column."""
    values = [part for part in get_args(hint) if part is not NoneType] if NoneType in get_args(hint) else [hint]
    return _SQL_TYPES[values[0]]


def data_frame_of(spark: SparkSession, kind: type[DataclassInstance], rows: Iterable[DataclassInstance]) -> DataFrame:
    """Returns the rows as a DataFrame.

    Args:
        spark: session of the caller.
        kind: class of the rows, which determines the columns even without rows.
        rows: the rows.
    """
    from catalog.jvm.local_rows import local_data_frame

    return local_data_frame(spark, [astuple(row) for row in rows], ddl_of(kind))


class ShownRow:
    """A row that notebooks show as a table."""

    def _repr_html_(self: DataclassInstance) -> str:
        return rows_as_html([self])


def rows_as_html(rows: Sequence[DataclassInstance], most: int = 50) -> str:
    """Returns rows as a table of HTML, with a column per field; all texts are escaped.

    Args:
        rows: rows of one class.
        most: number of rows that are shown.
    """
    if not rows:
        return "<p>No rows.</p>"
    names = [f.name for f in fields(rows[0])]
    shown = [["" if (v := getattr(row, name)) is None else v for name in names] for row in rows[:most]]
    left_out = f"<p>{len(rows) - most:,} more rows are not shown.</p>" if len(rows) > most else ""
    return html_table(names, shown) + left_out
