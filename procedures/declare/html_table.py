"""Values as tables of HTML, for pages and notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """A text that refers to a page.

    Attributes:
        text: the text.
        address: of the page, relative to the page with the table.
    """

    text: str
    address: str


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], code: int | None = None) -> str:
    """Returns a table of HTML; all texts are escaped.

    Args:
        header: names of the columns.
        rows: their values.
        code: number of a column with statements; None if there is none.
    """
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    lines = []
    for row in rows:
        cells = []
        for number, value in enumerate(row):
            text = html.escape(f"{value:,}" if _is_whole(value) else str(value))
            kind = ' class="number"' if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
            if isinstance(value, Link):
                text = f'<a href="{html.escape(value.address, quote=True)}">{html.escape(value.text)}</a>'
            cells.append(f"<td{kind}>{f'<code>{text}</code>' if number == code and text else text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
