"""The pages as HTML. All values are escaped by the templates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from catalog.epoch_millis import moment
from catalog.quantities import duration_text, size_text
from procedures.service.service_metrics import Sample
from sql_ext.dashboard.day_picture import day_picture
from sql_ext.dashboard.fleet_data import FleetData, running, short_reason
from sql_ext.dashboard.layout_picture import cube_picture, size_picture, size_table
from sql_ext.dashboard.listing import COLUMNS, ListPage, Query, list_page
from sql_ext.dashboard.table_data import TableData

FOLDER = Path(__file__).parent
_MOST_SHOWN, _MOST_WAITING = 10, 5
# Longer reasons make the list hard to read.
_MOST_CHARACTERS = 60
# Data that is older than so many intervals is marked.
_STALE_INTERVALS = 3
NOT_KNOWN = "–"


def _time(value: datetime | int | None, shown: str = "%Y-%m-%d %H:%M:%S") -> Markup | str:
    """A time in UTC, for people and for programs; a number is epoch milliseconds."""
    time = moment(value) if isinstance(value, int) else value
    if time is None:
        return NOT_KNOWN
    return Markup('<time datetime="{}">{}</time>').format(time.isoformat(timespec="seconds"), f"{time:{shown}}")


def _size(value: int | None) -> str:
    return NOT_KNOWN if value is None else size_text(value)


def _number(value: int | None) -> str:
    return NOT_KNOWN if value is None else f"{value:,}"


def _brief(reason: str | None) -> str:
    """A reason that fits into a row of the list; the page of the table has the whole one."""
    return reason or "" if len(reason or "") <= _MOST_CHARACTERS else short_reason(reason)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        time=_time,
        minute=partial(_time, shown="%Y-%m-%d %H:%M"),
        size=_size,
        number=_number,
        duration=duration_text,
        table_url=lambda name: f"table?name={quote(name, safe='')}",
        picture=Markup,
        metric=_metric,
        brief=_brief,
    )
    return environment


def _metric(sample: Sample) -> str:
    """The value of a sample, with its unit."""
    if "_bytes" in sample.metric.name:
        return size_text(sample.value)
    if "microseconds" in sample.metric.name:
        return duration_text(sample.value // 1000)
    return f"{sample.value:,}"


class Pages:
    """Renders pages.

    Args:
        refresh_seconds: how often the page of the fleet refreshes itself.
    """

    def __init__(self, refresh_seconds: float) -> None:
        self._seconds = max(1, round(refresh_seconds))
        self._environment = _environment()

    def fleet(self, data: FleetData, query: Query, now: int) -> str:
        """Returns the page of the fleet.

        Args:
            data: the fleet.
            query: what is asked for.
            now: epoch milliseconds.
        """
        return self._page("fleet.html", self._of_fleet(data, query, now))

    def fragment(self, data: FleetData, query: Query, now: int) -> str:
        """Returns the part of the page of the fleet that changes; see ``fleet``."""
        return self._page("fleet_content.html", self._of_fleet(data, query, now))

    def table(self, data: TableData) -> str:
        """Returns the page of a table.

        Args:
            data: the table.
        """
        layout = data.layout
        sizes = size_table(layout.sizes, layout.is_indexed)
        pictures = {
            "cubes": cube_picture(layout.cubes, layout.shown_columns) if layout.cubes else "",
            "files": size_picture(sizes) if sizes else "",
        }
        return self._page("table.html", {"data": data, "layout": layout, "sizes": sizes, "pictures": pictures})

    def message(self, title: str, text: str, name: str = "") -> str:
        """Returns a page with a message.

        Args:
            title: its title.
            text: the message.
            name: name of the table that it is about; '' for none.
        """
        return self._page("message.html", {"title": title, "text": text, "name": name})

    def sign_in(self, problem: str = "") -> str:
        """Returns the page that asks for the token.

        Args:
            problem: why the last attempt failed; '' if there was none.
        """
        return self._page("sign_in.html", {"problem": problem})

    def _of_fleet(self, data: FleetData, query: Query, now: int) -> Mapping[str, Any]:
        listed: ListPage = list_page(data.lines, query)
        age = max(0, now - data.gathered_at) // 1000
        return {
            "data": data,
            "query": query,
            "listed": listed,
            "columns": COLUMNS,
            "running": running(data),
            "most": _MOST_SHOWN,
            "most_waiting": _MOST_WAITING,
            "picture": day_picture(data.days),
            "has_saving": any(day.saved or day.spent for day in data.days),
            "age": age,
            "is_stale": age > _STALE_INTERVALS * self._seconds,
            "seconds": self._seconds,
        }

    def _page(self, name: str, values: Mapping[str, Any]) -> str:
        return self._environment.get_template(name).render(values)
