"""The session of a command, which it creates or shares, and the signals that stop it."""

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

# Set under spark-submit, where the JVM already runs and has the master and all settings.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
SERVICE_ENABLED_KEY = ENABLED.name
# At other levels, users want to see the output of Spark.
_QUIET_LEVELS = ("OFF", "ERROR")
_LOCAL = re.compile(r"local(\[.*\])?")
_LOCAL_DEFAULTS = {
    # Spark generates the secret if the driver is the only process. Without it, any process that reaches the ports of
    # the driver and of its block manager can run code in it.
    "spark.authenticate": "true",
    # The web pages have no authentication.
    "spark.ui.killEnabled": "false",
}


@dataclass(frozen=True)
class SessionSettings:
    """Settings of the session of a command.

    Attributes:
        conf: settings of Spark.
        progress: whether to draw a progress bar; None = if standard error is a terminal.
        log_level: level of Spark's log, in a session that the command creates.
        warehouse: folder of tables and their metastore; None = Spark's settings apply.
    """

    conf: Mapping[str, str]
    progress: bool | None = None
    log_level: str = "ERROR"
    warehouse: Path | None = None


def session_settings_of(options: dict[str, Any]) -> SessionSettings:
    """Removes the values of ``session_options`` and ``--progress`` from the parsed options and returns them."""
    return SessionSettings(
        dict(options.pop("conf")),
        options.pop("progress", None),
        options.pop("log_level").upper(),
        options.pop("warehouse"),
    )


@contextmanager
def session(session_settings: SessionSettings, later: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Yields the active session and restores its settings afterwards, or creates a session for the command.

    Args:
        session_settings: settings given to the command.
        later: settings to make after the session is attached.

    Raises:
        InvalidArgumentError: a warehouse was given although a session exists.
        UseError: the warehouse cannot be used.
    """
    conf = dict(session_settings.conf)
    if session_settings.progress is not None:
        conf[PROGRESS.name] = str(session_settings.progress).lower()
    present = SparkSession.getActiveSession()
    if present is None:
        # The automatic service is only for long-lived applications.
        spark = new_session(
            {**conf, SERVICE_ENABLED_KEY: "false"}, session_settings.log_level, session_settings.warehouse
        )
        try:
            attach(spark)
            _set(spark, later or {})
            yield spark
        finally:
            spark.stop()
        return
    if session_settings.warehouse is not None:
        raise InvalidArgumentError.of(
            "warehouse", str(session_settings.warehouse), "no warehouse, because the existing session has its own"
        )
    conf |= later or {}
    before = {key: present.conf.get(key, None) for key in conf}
    try:
        _set(present, conf)
        yield present
    finally:
        for key in (key for key, value in before.items() if value is None):
            present.conf.unset(key)
        _set(present, {key: value for key, value in before.items() if value is not None})


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        spark.conf.set(key, value)


def new_session(conf: Mapping[str, str], log_level: str, warehouse: Path | None = None) -> SparkSession:
    """Starts a session without attaching it.

    Args:
        conf: settings of Spark, which override the defaults of USE.
        log_level: level of Spark's log.
        warehouse: see ``SessionSettings``.

    Raises:
        UseError: the warehouse cannot be used.
    """
    # Commands show no place in Python code with an error, and PySpark asks the JVM thousands of times to note it.
    settings = {"spark.python.sql.dataFrameDebugging.enabled": "false", **conf}
    if warehouse is not None:
        open_warehouse(warehouse)
        settings = with_warehouse(settings, warehouse)
    if SUBMITTED not in os.environ:
        settings = with_private_ports(settings)
    # pyspark logs the JVM's stack trace of each error that it raises. Commands print errors as one line.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder
    if SUBMITTED not in os.environ:
        # Spark's progress bar would overwrite the one of USE.
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
        # Under spark-submit the JVM already runs, so its options have no effect.
        set_system_property(spark, DERBY_LOG, str(metastore_log(warehouse)))
    return spark


def with_private_ports(settings: dict[str, str]) -> dict[str, str]:
    """Limits Spark's ports to localhost and protects them by a secret if the driver is the only process.

    Args:
        settings: settings of the session, which take precedence, as does SPARK_LOCAL_IP in the environment.
    """
    if not _LOCAL.fullmatch(settings.get("spark.master", "local")):
        return settings
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return {**_LOCAL_DEFAULTS, **settings}


@contextmanager
def on_signals(act: Callable[[], None], numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """Calls ``act`` at the first of each of these signals; a second one has its previous effect."""
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
