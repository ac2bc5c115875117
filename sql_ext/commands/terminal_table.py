"""Tables that fit the width of a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_GAP = 2
# A column of text may be wrapped to this width, and no further. Longer words may be broken.
_NARROWEST_TEXT = 16
_LONGEST_WORD = 24
# Beyond this number of rows, lines per row are harder to compare than a table that is too wide.
_MOST_RECORDS = 50


@dataclass(frozen=True)
class FittedTable:
    """A table that fits a terminal.

    Attributes:
        text: the table.
        hidden: names of columns with values that did not fit.
    """

    text: str
    hidden: tuple[str, ...] = ()


def terminal_table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    width: int,
    hidden_first: Sequence[str] = (),
) -> FittedTable:
    """Formats rows for a terminal: as a table with wrapped texts, else as one block of lines per row.

    A table that does not fit hides its empty columns first.

    Args:
        names: names of the columns.
        rows: cells, each on one line.
        numeric: which columns contain numbers, which are right-aligned and never wrapped.
        width: of the terminal, in characters.
        hidden_first: names of columns that may be hidden, in this order.
    """
    shown = list(range(len(names)))

    columns = [_Column.of(name, [row[i] for row in rows], numeric[i]) for i, name in enumerate(names)]

    def fits() -> bool:
        return sum(columns[i].least + _GAP for i in shown) - _GAP <= width

    if not fits():
        shown = [i for i in shown if any(columns[i].cells)] or shown
    with_values, hidden = shown, []
    for name in hidden_first:
        if not fits() and name in names and names.index(name) in shown and len(shown) > 1:
            shown = [i for i in shown if names[i] != name]
            hidden.append(name)
    if fits():
        return FittedTable(_table([columns[i] for i in shown], width), tuple(hidden))
    filled = [columns[i] for i in with_values]
    if len(rows) <= _MOST_RECORDS:
        return FittedTable(_records(filled, width))
    return FittedTable(_table(filled, sum(column.natural + _GAP for column in filled)))


@dataclass(frozen=True)
class _Column:
    """A column with its widths.

    Attributes:
        header: name with spaces, where it may be wrapped.
        cells: values.
        is_number: whether values are right-aligned and never wrapped.
        least: smallest width, at which numbers and most words are not broken.
        natural: width without wrapped cells.
    """

    header: str
    cells: tuple[str, ...]
    is_number: bool
    least: int
    natural: int

    @classmethod
    def of(cls, name: str, cells: Sequence[str], is_number: bool) -> _Column:
        header = name.replace("_", " ")
        longest = max(map(cell_len, cells), default=0)
        least = longest
        if not is_number:
            words = min(max(map(_longest_word, cells), default=0), _LONGEST_WORD)
            least = max(min(longest, _NARROWEST_TEXT), words)
        return cls(header, tuple(cells), is_number, max(least, _longest_word(header)), max(longest, cell_len(header)))


def _longest_word(text: str) -> int:
    return max(cell_len(word) for word in text.split(" "))


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Gives the columns the width that is left, those that need least of it first."""
    widths = [column.least for column in columns]
    left = width - sum(widths) - _GAP * (len(columns) - 1)
    for place, i in enumerate(sorted(range(len(columns)), key=lambda i: columns[i].natural - columns[i].least)):
        share = left // (len(columns) - place)
        more = min(columns[i].natural - columns[i].least, share)
        widths[i] += more
        left -= more
    return widths


def _table(columns: Sequence[_Column], width: int) -> str:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column, its_width in zip(columns, _widths(columns, width), strict=True):
        table.add_column(
            Text(column.header), justify="right" if column.is_number else "left", overflow="fold", width=its_width
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    # The padding of the last column is empty.
    console = Console(file=io.StringIO(), width=width + _GAP, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _records(columns: Sequence[_Column], width: int) -> str:
    left = max(cell_len(column.header) for column in columns) + _GAP
    console = Console(file=io.StringIO(), width=width)
    blocks = []
    for cells in zip(*(column.cells for column in columns), strict=True):
        lines = []
        for column, cell in zip(columns, cells, strict=True):
            if not cell:
                continue
            first, *more = Text(cell).wrap(console, max(width - left, _NARROWEST_TEXT))
            lines.append(f"{column.header:<{left}}{first.plain.rstrip()}")
            lines += [" " * left + line.plain.rstrip() for line in more]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
