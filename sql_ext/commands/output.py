"""Output of commands: rows on standard output, everything else on standard error."""

from __future__ import annotations

import base64
import csv
import enum
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import click

from catalog.control_characters import without_control_characters
from sql_ext.commands.hanging_lines import terminal_width
from sql_ext.commands.readable_values import readable, readable_name

Row = Mapping[str, Any]


class OutputFormat(enum.Enum):
    """How a command prints rows."""

    TABLE = "table"
    """For people: on a terminal, it fits the width."""
    JSON = "json"
    """One object per line."""
    CSV = "csv"
    """A line of names, then one line per row; NULL is empty."""

    @property
    def is_for_programs(self) -> bool:
        """Whether programs read it, so that nothing may be left out, shortened or formatted."""
        return self is not OutputFormat.TABLE


def print_rows(
    rows: Iterable[Row],
    output_format: OutputFormat,
    columns: Sequence[str] | None = None,
    hidden_first: Sequence[str] = (),
) -> None:
    """Prints rows on standard output.

    Args:
        rows: the rows, with equal columns.
        output_format: how to print them.
        columns: names of the columns, for a header without rows; those of the first row by default.
        hidden_first: columns of a table that a narrow terminal may hide, in this order.
    """
    if output_format is OutputFormat.JSON:
        for row in rows:
            click.echo(json_text({name: plain(value) for name, value in row.items()}))
    elif output_format is OutputFormat.CSV:
        _print_csv(rows, columns)
    else:
        all_rows = list(rows)
        if all_rows:
            names = list(all_rows[0])
            cells = [[readable(name, row[name]) for name in names] for row in all_rows]
            are_numbers = [_is_numeric([row[name] for row in all_rows]) for name in names]
            click.echo(
                table_text(
                    [readable_name(name) for name in names],
                    cells,
                    are_numbers,
                    [readable_name(name) for name in hidden_first],
                )
            )


def _print_csv(rows: Iterable[Row], columns: Sequence[str] | None) -> None:
    """Prints a header and rows; nothing if there is neither a row nor a list of columns."""
    names = columns
    if names is not None:
        click.echo(_csv_line(names))
    for row in rows:
        if names is None:
            names = list(row)
            click.echo(_csv_line(names))
        click.echo(_csv_line([_csv_value(value) for value in row.values()]))


def _csv_value(value: Any) -> str:
    value = plain(value)
    if value is None:
        return ""
    return json_text(value) if isinstance(value, (bool, list, dict)) else str(value)


def _csv_line(values: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


def json_text(value: Any) -> str:
    """Returns a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)


def plain(value: Any) -> Any:
    """Converts a value of Spark for JSON: bytes to base 64; NaN, infinities and other types to strings."""
    if isinstance(value, tuple) and hasattr(value, "asDict"):  # a row of Spark
        value = value.asDict()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, (datetime, date)):
        return str(value)
    return value


def table_text(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    numeric: Sequence[bool] | None = None,
    hidden_first: Sequence[str] = (),
) -> str:
    """Formats a table for standard output: on a terminal, it fits the width; otherwise a row is one line.

    Args:
        header: names of the columns.
        rows: values; NULL is empty.
        numeric: which columns are right-aligned; those with numbers by default.
        hidden_first: columns that a narrow terminal may hide, in this order. A line on standard error names them.
    """
    header = [without_control_characters(name) for name in header]
    texts = [[_cell(cell) for cell in row] for row in rows]
    if numeric is None:
        numeric = [_is_numeric([row[i] for row in rows]) for i in range(len(header))]
    width = terminal_width()
    if width is not None:
        from sql_ext.commands.terminal_table import terminal_table

        fitted = terminal_table(header, texts, numeric, width, hidden_first)
        if fitted.hidden:
            say(f"hidden to fit the terminal: {', '.join(fitted.hidden)}; --json prints all columns")
        return fitted.text
    widths = [max(len(line[i]) for line in [header, *texts]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, texts)])


def _is_numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) or value is None for value in values) and any(
        value is not None for value in values
    )


def _cell(value: Any) -> str:
    """Returns a value on one line, which controls no terminal."""
    if value is None:
        return ""
    value = plain(value)
    text = json_text(value) if isinstance(value, (bool, list, dict)) else str(value)
    return without_control_characters(text.replace("\r", "\\r").replace("\n", "\\n"))


def say(text: str) -> None:
    """Prints one line on standard error."""
    click.echo(f"use-spark: {' '.join(without_control_characters(text).split())}", err=True)
