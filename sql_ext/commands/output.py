"""What commands print: rows on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

Row = Mapping[str, Any]


def print_rows(rows: Iterable[Row], as_json: bool) -> None:
    """Prints rows on standard output: one JSON object per line, or a table."""
    if as_json:
        for row in rows:
            click.echo(json.dumps(dict(row), ensure_ascii=False, default=str))
        return
    found = list(rows)
    if found:
        click.echo(table_text(list(found[0]), [list(row.values()) for row in found]))


def table_text(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Aligns columns: numbers to the right, everything else to the left; an absent value is empty."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
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


def say(text: str) -> None:
    """Prints one line for people on standard error."""
    click.echo(f"use-spark: {' '.join(text.split())}", err=True)
