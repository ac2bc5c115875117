"""The dashboard of a Spark application: a collector, and a web server in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from catalog.errors import UseError
from procedures.process.application import Application
from procedures.service.execution import background_session
from procedures.service.service_metrics import Sample
from sql_ext.dashboard.address import OpenPort
from sql_ext.dashboard.collector import Collector
from sql_ext.dashboard.spark_fleet import SparkFleet

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_SECONDS_TO_START, _SECONDS_TO_STOP = 10.0, 5.0
_POLL_SECONDS = 0.02


@contextmanager
def dashboard(
    port: OpenPort,
    spark: SparkSession,
    app: Application,
    tables: Sequence[str] | None = None,
    samples: Callable[[], Iterable[Sample]] | None = None,
) -> Iterator[None]:
    """Serves the dashboard while the block runs.

    Args:
        port: see ``open_port``.
        spark: an attached session; the dashboard works in a session of its own.
        app: the state of the process.
        tables: names or paths of the tables of the service; the whole metastore by default.
        samples: returns the metrics of the service; None without one.
    """
    # These need the packages of the extra.
    from sql_ext.dashboard.pages import Pages
    from sql_ext.dashboard.spark_table import SparkTableSource
    from sql_ext.dashboard.table_requests import TableRequests
    from sql_ext.dashboard.web_application import web_application

    background = background_session(spark)
    collector = Collector(SparkFleet(background, app, tables, samples), app.clock)
    source = SparkTableSource(background, app)
    requests = TableRequests(source.gather, source.cancel, app.clock)
    pages = Pages(collector.interval)
    web = web_application(lambda: collector.newest, requests, pages, port.access, app.clock)
    collector.start()
    try:
        with served(web, port):
            yield
    finally:
        collector.stop()


@contextmanager
def served(web: ASGIApp, port: OpenPort) -> Iterator[None]:
    """Serves a web application while the block runs.

    Args:
        web: the application.
        port: where.

    Raises:
        UseError: the server does not start.
    """
    import uvicorn

    from sql_ext.dashboard.connections import MOST_CONNECTIONS, LimitedConnection

    config = uvicorn.Config(
        web,
        http=LimitedConnection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        # Addresses with tokens must not be in a log.
        access_log=False,
        log_config=None,
        log_level="error",
        proxy_headers=False,
        server_header=False,
        # The event loop accepts so many connections before it looks at the first of them.
        backlog=MOST_CONNECTIONS,
        # Answers to clients that have gone count, too.
        limit_concurrency=2 * MOST_CONNECTIONS,
        timeout_graceful_shutdown=int(_SECONDS_TO_STOP),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([port.socket],), name="use-dashboard-server", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + _SECONDS_TO_START
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise UseError(f"The dashboard does not start at {port.access.host}:{port.access.port}.")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        server.should_exit = True
        thread.join(2 * _SECONDS_TO_STOP)
