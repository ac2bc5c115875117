"""The session that a command works in, one of its own or the one that is there, and the signals that end its work."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError
from catalog.jvm.session import set_system_property
from catalog.properties.session_settings import PROGRESS
from procedures.service.service_settings import ENABLED
from sql_ext.attachment import attach
from sql_ext.commands.driver import started_driver
from sql_ext.commands.startup_output import held_back
from sql_ext.configuration import configure
from sql_ext.warehouse import DERBY_LOG, metastore_log, open_warehouse, with_warehouse

# Python under spark-submit: the JVM is there already, and with it the master and every setting.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
SERVICE_ENABLED_KEY = ENABLED.name
# With the others, people want to see what Spark says.
_QUIET_LEVELS = ("OFF", "ERROR")
_LOCAL = re.compile(r"local(\[.*\])?")
_LOCAL_DEFAULTS = {
    # Spark makes the secret itself when the driver is the only process. Without it, whoever reaches the ports of the
    # driver and of its block manager can run code in it.
    "spark.authenticate": "true",
    # The web pages ask for no password.
    "spark.ui.killEnabled": "false",
}


@dataclass(frozen=True)
class SessionWishes:
    """What a command wants of its session.

    Attributes:
        conf: settings of Spark.
        progress: whether a progress bar is shown; None = where standard error is a terminal.
        log_level: of Spark's own log, in a session that the command makes.
        warehouse: folder of tables and their metastore; None = Spark's own settings.
    """

    conf: Mapping[str, str]
    progress: bool | None = None
    log_level: str = "ERROR"
    warehouse: Path | None = None


def wishes_of(given: dict[str, Any]) -> SessionWishes:
    """Takes the values of ``session_options`` and of ``--progress`` out of what was given."""
    return SessionWishes(
        dict(given.pop("conf")), given.pop("progress", None), given.pop("log_level").upper(), given.pop("warehouse")
    )


@contextmanager
def session(wishes: SessionWishes, later: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """The active session, left as it was found, or one that lives as long as the command.

    Args:
        wishes: what the command was told.
        later: settings that hold once the session is attached, and not yet while it is.

    Raises:
        InvalidArgumentError: a warehouse was asked for that the session cannot have.
        UseError: the warehouse cannot be used.
    """
    asked = dict(wishes.conf)
    if wishes.progress is not None:
        asked[PROGRESS.name] = str(wishes.progress).lower()
    present = SparkSession.getActiveSession()
    if present is None:
        # The service that attach would start is for applications that stay.
        spark = new_session({**asked, SERVICE_ENABLED_KEY: "false"}, wishes.log_level, wishes.warehouse)
        try:
            attach(spark)
            _set(spark, later or {})
            yield spark
        finally:
            spark.stop()
        return
    if wishes.warehouse is not None:
        raise InvalidArgumentError.of("warehouse", str(wishes.warehouse), "nothing inside a session that has its own")
    asked |= later or {}
    before = {key: present.conf.get(key, None) for key in asked}
    try:
        _set(present, asked)
        yield present
    finally:
        for key in (key for key, value in before.items() if value is None):
            present.conf.unset(key)
        _set(present, {key: value for key, value in before.items() if value is not None})


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        spark.conf.set(key, value)


def new_session(conf: Mapping[str, str], log_level: str, warehouse: Path | None = None) -> SparkSession:
    """Starts a session, which is not attached yet.

    Args:
        conf: settings of Spark, which win over ours.
        log_level: of Spark's own log.
        warehouse: see ``SessionWishes``.

    Raises:
        UseError: the warehouse cannot be used.
    """
    settings = dict(conf)
    if warehouse is not None:
        open_warehouse(warehouse)
        settings = with_warehouse(settings, warehouse)
    if SUBMITTED not in os.environ:
        settings = with_private_ports(settings)
    # pyspark logs the JVM's stack of each error that it raises; ours are one line.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder
    if SUBMITTED not in os.environ:
        # Spark's own progress would be drawn over ours.
        builder = builder.appName("use-spark").master("local[*]").config("spark.ui.showConsoleProgress", "false")
    for key, value in settings.items():
        builder = builder.config(key, value)
    if SUBMITTED not in os.environ:
        builder = configure(builder)
    quiet = log_level in _QUIET_LEVELS and started_driver() is None and SUBMITTED not in os.environ
    with held_back() if quiet else nullcontext():
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel(log_level)
    if warehouse is not None:
        # Under spark-submit the JVM runs already, and its options come too late.
        set_system_property(spark, DERBY_LOG, str(metastore_log(warehouse)))
    return spark


def with_private_ports(settings: dict[str, str]) -> dict[str, str]:
    """Keeps Spark's own ports to this machine, and behind a secret, when the driver is the only process.

    Args:
        settings: of a session to be created; they win. So does SPARK_LOCAL_IP in the environment.
    """
    if not _LOCAL.fullmatch(settings.get("spark.master", "local")):
        return settings
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return {**_LOCAL_DEFAULTS, **settings}


@contextmanager
def on_signals(act: Callable[[], None], numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """Calls ``act`` at the first of each of these signals; the second does what it did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in numbers}

    def handle(number: int, _: FrameType | None) -> None:
        signal.signal(number, before[signal.Signals(number)])
        act()

    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
