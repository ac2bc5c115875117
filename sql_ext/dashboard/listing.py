"""Search, order and pages of the list of tables, from the query string of a request; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeAlias
from urllib.parse import urlencode

from catalog.errors import InvalidArgumentError
from sql_ext.dashboard.fleet_data import TableLine

ROWS_PER_PAGE = 50
_MOST_CHARACTERS = 200
_LAST_PAGE = 1_000_000

Key: TypeAlias = Callable[[TableLine], Any]


@dataclass(frozen=True)
class Column:
    """A column of the list.

    Attributes:
        name: value of ``order`` in the query string.
        title: its heading.
        key: the value by which it orders; None comes last in both directions.
        largest_first: whether the first click shows the largest values first.
        is_number: whether its values are aligned on the right.
    """

    name: str
    title: str
    key: Key
    largest_first: bool = False
    is_number: bool = True


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


COLUMNS = (
    Column("rank", "Rank", lambda line: line.row.rank),
    Column("table", "Table", lambda line: line.name, is_number=False),
    Column("state", "State", lambda line: line.row.state, is_number=False),
    Column("health", "Health", lambda line: line.score),
    Column("cost", "To rewrite", lambda line: line.row.cost_bytes, largest_first=True),
    Column("saving", "Expected saving a day", lambda line: line.row.saving_per_day, largest_first=True),
    Column("measured", "Measured saving a day", lambda line: line.row.measured_saving, largest_first=True),
    Column("last", "Last run", lambda line: _seconds(line.row.last_run), largest_first=True),
    Column("next", "Next run", lambda line: _seconds(line.next_run)),
)
"""The columns, in their order."""
_BY_NAME = {column.name: column for column in COLUMNS}
_DIRECTIONS = ("up", "down")
_REFRESH = ("on", "off")


@dataclass(frozen=True)
class Query:
    """What a request asks for.

    Attributes:
        search: a part of the name of tables or of their reasons; '' for all.
        state: only tables of this state; '' for all.
        order: name of a column.
        direction: ``up`` or ``down``; '' for that of the column.
        page: number of the page, from 1.
        refresh: ``on`` or ``off``: whether the page refreshes itself.
    """

    search: str = ""
    state: str = ""
    order: str = "rank"
    direction: str = ""
    page: int = 1
    refresh: str = "on"

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Query:
        """Returns the query of a query string.

        Args:
            parameters: by name; unknown ones do not count.

        Raises:
            InvalidArgumentError: a value is not accepted.
        """
        order = _one_of("order", parameters.get("order") or "rank", tuple(_BY_NAME))
        direction = parameters.get("direction", "")
        page = parameters.get("page") or "1"
        if not (page.isascii() and page.isdigit() and 1 <= int(page[:9]) <= _LAST_PAGE):
            raise InvalidArgumentError.of("page", page[:20], "a whole number of at least 1")
        return cls(
            search=parameters.get("search", "").strip()[:_MOST_CHARACTERS],
            state=parameters.get("state", "").strip()[:_MOST_CHARACTERS],
            order=order,
            direction=_one_of("direction", direction, _DIRECTIONS) if direction else "",
            page=int(page[:9]),
            refresh=_one_of("refresh", parameters.get("refresh") or "on", _REFRESH),
        )

    @property
    def is_downward(self) -> bool:
        """Whether the largest values come first."""
        return _BY_NAME[self.order].largest_first if not self.direction else self.direction == "down"

    def text(self, **changes: Any) -> str:
        """Returns the query string of the query with some changes; defaults are left out.

        Args:
            **changes: values by field.
        """
        changed = asdict(replace(self, **changes))
        texts = {f.name: changed[f.name] for f in fields(self) if changed[f.name] != f.default}
        return f"?{urlencode(texts)}" if texts else "?"

    def ordered_by(self, column: Column) -> str:
        """Returns the query string that orders by a column, in the other direction if it orders by it now.

        Args:
            column: the column.
        """
        direction = ""
        if column.name == self.order:
            direction = "up" if self.is_downward else "down"
        return self.text(order=column.name, direction=direction, page=1)


def _one_of(name: str, text: str, accepted: Sequence[str]) -> str:
    if text not in accepted:
        raise InvalidArgumentError.of(name, text[:_MOST_CHARACTERS], f"one of {', '.join(accepted)}")
    return text


@dataclass(frozen=True)
class ListPage:
    """A page of the list.

    Attributes:
        lines: its tables.
        number: its number, from 1.
        pages: how many there are.
        matches: number of tables that match.
    """

    lines: tuple[TableLine, ...]
    number: int
    pages: int
    matches: int

    @property
    def first(self) -> int:
        """Number of its first table among those that match, from 1; 0 without any."""
        return (self.number - 1) * ROWS_PER_PAGE + 1 if self.lines else 0

    @property
    def last(self) -> int:
        """Number of its last table."""
        return self.first + len(self.lines) - 1 if self.lines else 0


def list_page(lines: Sequence[TableLine], query: Query) -> ListPage:
    """Returns the page of a query; the last one if it has a higher number.

    Args:
        lines: all tables.
        query: what is asked for.
    """
    wanted = query.search.lower()
    matching = [
        line
        for line in lines
        if (not query.state or line.row.state == query.state)
        and (not wanted or wanted in line.name.lower() or wanted in (line.row.reason or "").lower())
    ]
    key = _BY_NAME[query.order].key
    known = sorted((line for line in matching if key(line) is not None), key=key, reverse=query.is_downward)
    ordered = [*known, *(line for line in matching if key(line) is None)]
    pages = max(1, -(-len(ordered) // ROWS_PER_PAGE))
    number = min(query.page, pages)
    start = (number - 1) * ROWS_PER_PAGE
    return ListPage(tuple(ordered[start : start + ROWS_PER_PAGE]), number, pages, len(ordered))
