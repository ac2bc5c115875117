"""Output of commands: rows on standard output, everything else on standard error."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import click
from pyspark.sql import Row as SparkRow

Row = Mapping[str, Any]


def print_rows(rows: Iterable[Row], as_json: bool) -> None:
    """Prints rows on standard output: one JSON object per line, or a table."""
    if as_json:
        for row in rows:
            click.echo(json_text({name: plain(value) for name, value in row.items()}))
        return
    all_rows = list(rows)
    if all_rows:
        click.echo(table_text(list(all_rows[0]), [list(row.values()) for row in all_rows]))


def json_text(value: Any) -> str:
    """Returns a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)


def plain(value: Any) -> Any:
    """Converts a value of Spark for JSON: bytes to base 64; NaN, infinities and other types to strings."""
    if isinstance(value, SparkRow):
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


def table_text(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Formats a table: numbers are right-aligned, everything else left-aligned; NULL is empty."""
    texts = [[_cell(cell) for cell in row] for row in rows]
    numeric = [
        all(isinstance(row[i], (int, float)) or row[i] is None for row in rows)
        and any(row[i] is not None for row in rows)
        for i in range(len(header))
    ]
    widths = [max(len(line[i]) for line in [list(header), *texts]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, texts)])


def _cell(value: Any) -> str:
    """Returns a value on one line."""
    if value is None:
        return ""
    value = plain(value)
    text = json_text(value) if isinstance(value, (bool, list, dict)) else str(value)
    return text.replace("\r", "\\r").replace("\n", "\\n")


def say(text: str) -> None:
    """Prints one line on standard error."""
    click.echo(f"use-spark: {' '.join(text.split())}", err=True)
