"""The web application: which page answers which request."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from catalog.clock import Clock
from catalog.errors import InvalidArgumentError, UseError
from catalog.jvm.java_errors import known_error
from sql_ext.dashboard.address import Access
from sql_ext.dashboard.fleet_data import FleetData
from sql_ext.dashboard.guard import Guard
from sql_ext.dashboard.listing import Query
from sql_ext.dashboard.pages import FOLDER, Pages
from sql_ext.dashboard.table_data import TableData
from sql_ext.dashboard.table_requests import NoAnswerError

logger = logging.getLogger(__name__)

TABLE_SECONDS, PLAN_SECONDS = 20.0, 90.0
"""How long the page of a table may take, without and with its plan."""


class TableReader(Protocol):
    """See ``table_requests.TableRequests``."""

    def get(self, name: str, with_plan: bool, seconds: float) -> TableData:
        """Returns what is asked about a table."""
        ...


def web_application(
    newest: Callable[[], FleetData], tables: TableReader, pages: Pages, access: Access, clock: Clock
) -> ASGIApp:
    """Returns the application.

    Args:
        newest: returns the newest data of the fleet.
        tables: gathers the data of one table.
        pages: renders pages.
        access: who may read.
        clock: the time.
    """

    def of_fleet(render: Callable[[FleetData, Query, int], str]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                query = Query.of(request.query_params)
            except InvalidArgumentError as error:
                return HTMLResponse(pages.message("The address is not accepted", error.message), 400)
            return HTMLResponse(render(newest(), query, clock.now()))

        return answer

    def table(request: Request) -> Response:
        name = request.query_params.get("name", "")
        if all(line.name != name for line in newest().lines):
            # Only tables of the fleet: the page must not open any path that somebody writes into the address.
            return HTMLResponse(pages.message("No such table", f"The fleet has no table {name!r}."), 404)
        # A plan costs Spark jobs: a page of another site may not ask for it.
        is_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
        with_plan = request.query_params.get("plan") == "1" and not is_from_elsewhere
        try:
            data = tables.get(name, with_plan, PLAN_SECONDS if with_plan else TABLE_SECONDS)
        except NoAnswerError as error:
            return HTMLResponse(pages.message("No answer yet", str(error), name), 503)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a table is shown on its page
            return HTMLResponse(pages.message("The table cannot be read", _text(error), name), 502)
        return HTMLResponse(pages.table(data))

    def missing(_: Request, __: Exception) -> Response:
        return HTMLResponse(pages.message("No such page", "The dashboard has no page of this address."), 404)

    app = Starlette(
        routes=[
            Route("/", of_fleet(pages.fleet)),
            Route("/fragment", of_fleet(pages.fragment)),
            Route("/table", table),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ],
        exception_handlers={404: missing},
    )
    return Guard(app, access, pages.sign_in)


def _text(error: Exception) -> str:
    known: UseError = known_error(error)
    if known is not error:
        logger.info("A table cannot be shown: %s", known.message)
    return f"{known.code}: {known.message}"
