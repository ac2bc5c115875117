"""A server from its start to its end: who is let in, where, and how it stops without cutting a rewrite."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.jvm.java_values import jvm
from procedures.application import application
from procedures.service.service import stop_current
from sql_ext.server.connect import ConnectServer
from sql_ext.server.jdbc import JdbcServer
from sql_ext.server.settings import TOKEN, ServerSettings

_LOOK_SECONDS = 0.2
# Clients whose optimization was ended fetch its report meanwhile.
_SECONDS_TO_FETCH = 5.0


@dataclass(frozen=True)
class Endpoints:
    """Where clients connect to.

    Attributes:
        jdbc: URL for JDBC clients.
        connect: URL for Spark Connect clients; None when it is not served.
    """

    jdbc: str
    connect: str | None


def serve(
    spark: SparkSession,
    settings: ServerSettings,
    token: str,
    ready: Callable[[Endpoints], None],
    ending: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    """Serves until ``ending``; then runs under way end at their next boundary between groups.

    Args:
        spark: an attached session.
        settings: checked.
        token: of the server; unused without authentication.
        ready: told where clients connect to.
        ending: asked again and again.
        say: told what it waits for.

    Raises:
        UseError: a server could not start.
    """
    jvm(spark).io.usespark.ClientErrorFilter().install()
    jdbc = JdbcServer(spark, settings, token)
    try:
        connect = None if settings.connect_port is None else ConnectServer(spark, settings, token)
        try:
            ready(_endpoints(settings, jdbc, connect))
            while not ending():
                time.sleep(_LOOK_SECONDS)
            _end_runs(say)
        finally:
            if connect is not None:
                connect.stop()
    finally:
        jdbc.stop()
    # Who was let in meanwhile may have begun one.
    _end_runs(say)


def _endpoints(settings: ServerSettings, jdbc: JdbcServer, connect: ConnectServer | None) -> Endpoints:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if connect is None:
        return Endpoints(f"jdbc:hive2://{host}:{jdbc.port}/default", None)
    # Clients send a token without TLS to a host of this very name only.
    name = "localhost" if settings.auth == TOKEN and settings.loopback else host
    return Endpoints(f"jdbc:hive2://{host}:{jdbc.port}/default", f"sc://{name}:{connect.port}")


def _end_runs(say: Callable[[str], None]) -> None:
    said = False
    while runs := application().runs.live():
        if not said:
            say(f"ending when the groups under way are committed: {', '.join(run.table for run in runs)}")
            said = True
        for run in runs:
            run.request_stop("INTERRUPTED", "the server is stopping")
        time.sleep(_LOOK_SECONDS)
    stop_current()
    if said:
        time.sleep(_SECONDS_TO_FETCH)
