"""Start and stop of the servers. A stop waits for the current groups of rewrites."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.jvm.java_values import jvm
from procedures.process.application import application
from sql_ext.driver_process import serve_until
from sql_ext.server.connect import ConnectServer
from sql_ext.server.jdbc import JdbcServer
from sql_ext.server.settings import TOKEN, ServerSettings

_POLL_SECONDS = 0.2
# Time for clients to fetch the reports of their stopped optimizations.
_SECONDS_TO_FETCH = 5.0


@dataclass(frozen=True)
class Endpoints:
    """Addresses for clients.

    Attributes:
        jdbc: URL for JDBC clients.
        connect: URL for Spark Connect clients; None if it is not served.
    """

    jdbc: str
    connect: str | None


def serve(
    spark: SparkSession,
    settings: ServerSettings,
    token: str,
    ready: Callable[[Endpoints], None],
    should_stop: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    """Serves until ``should_stop`` returns True; then stops running optimizations after their current groups.

    Args:
        spark: an attached session.
        settings: checked settings.
        token: token of the server; unused without authentication.
        ready: called with the addresses for clients.
        should_stop: polled while the servers run.
        say: prints a line.

    Raises:
        UseError: a server could not start, or Spark has stopped.
    """
    jvm(spark).io.usespark.ClientErrorFilter().install()
    jdbc = JdbcServer(spark, settings, token)
    try:
        connect = None if settings.connect_port is None else ConnectServer(spark, settings, token)
        try:
            ready(_endpoints(settings, jdbc, connect))
            serve_until(should_stop, spark.sparkContext)
            _stop_runs(say)
        finally:
            if connect is not None:
                connect.stop()
    finally:
        jdbc.stop()
    # A client may have started another run in the meantime.
    _stop_runs(say)


def _endpoints(settings: ServerSettings, jdbc: JdbcServer, connect: ConnectServer | None) -> Endpoints:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if connect is None:
        return Endpoints(f"jdbc:hive2://{host}:{jdbc.port}/default", None)
    # Without TLS, clients send a token only to a host with exactly this name.
    name = "localhost" if settings.auth == TOKEN and settings.loopback else host
    return Endpoints(f"jdbc:hive2://{host}:{jdbc.port}/default", f"sc://{name}:{connect.port}")


def _stop_runs(say: Callable[[str], None]) -> None:
    announced, service = False, application().services.attached
    if service is not None:
        # Otherwise it would begin the next run whenever one ends, and the runs would not come to an end.
        service.stop(0)
    while runs := application().runs.live():
        if not announced:
            say(f"stopping after the current groups are committed: {', '.join(run.table for run in runs)}")
            announced = True
        for run in runs:
            run.request_stop("INTERRUPTED", "the server is stopping")
        time.sleep(_POLL_SECONDS)
    application().services.stop_attached()
    if announced:
        time.sleep(_SECONDS_TO_FETCH)
