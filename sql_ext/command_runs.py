"""What commands do: a session of their own or the one that is there, a run in it, and the signals that end it."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession

from catalog.errors import IndexUnreadableError
from catalog.tables import ManagedTable
from otree.errors import IndexFormatError
from procedures.engine import optimize
from procedures.optimize_settings import OptimizeSettings
from procedures.progress import PROGRESS_KEY
from procedures.runs import CLI, Run
from sql_ext.attachment import attach
from sql_ext.command_output import Row, say
from sql_ext.configuration import configure

# Python under spark-submit: the JVM is there already, and with it the master and every setting.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
SERVICE_ENABLED_KEY = "spark.qbeast.use.service.enabled"
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class SessionWishes:
    """What a command wants of its session.

    Attributes:
        conf: settings of Spark.
        progress: whether a progress bar is shown; None = where standard error is a terminal.
        log_level: of Spark's own log, in a session that the command makes.
    """

    conf: Mapping[str, str]
    progress: bool | None = None
    log_level: str = "ERROR"


class _SpokenRun(Run):
    """A run that tells the terminal when it was asked to stop."""

    def request_stop(self, code: str, message: str) -> None:
        """See ``Run.request_stop``."""
        if self.stop_reason is None:
            # Not through Python's buffers: a signal may come while a line is being written to them.
            os.write(2, b"use-spark: stopping when the groups under way are committed; once more ends it at once\n")
        super().request_stop(code, message)


class Runner:
    """Runs commands with Spark; tests of the command line pass another."""

    def optimize(self, arguments: Mapping[str, Any], wishes: SessionWishes) -> list[Row]:
        """Optimizes a table, as ``CALL use.optimize`` does, with trigger ``cli``.

        Args:
            arguments: by the procedure's parameters, each given.
            wishes: for the session.

        Returns:
            The rows of the report.

        Raises:
            UseError: as ``CALL use.optimize``; wrong arguments are found before a session is made.
        """
        settings = OptimizeSettings.of(arguments)
        with _session(wishes) as spark:
            try:
                table = ManagedTable.find(spark, arguments["table"])
                run = _SpokenRun.of(table, CLI, settings.parameters)
                with _on_signals(lambda: run.request_stop("INTERRUPTED", "interrupted"), (signal.SIGTERM,)):
                    return [asdict(row) for row in optimize(table, settings, run)]
            except IndexFormatError as error:
                raise IndexUnreadableError(str(error)) from error

    def serve(self, tables: Sequence[str], wishes: SessionWishes) -> None:
        """Runs the automatic service until SIGINT or SIGTERM, then ends it at a boundary between groups.

        Args:
            tables: names or paths; the whole catalog when empty.
            wishes: for the session.
        """
        from procedures.service import Service

        # No threading.Event: its lock may be in the hands of the very thread that the signal's handler interrupts.
        asked_to_end: list[bool] = []
        with (
            _session(wishes, {SERVICE_ENABLED_KEY: "true"}) as spark,
            _on_signals(lambda: asked_to_end.append(True), (signal.SIGINT, signal.SIGTERM)),
        ):
            service = Service(spark, tables=list(tables) or None)
            service.start()
            say(f"serving {', '.join(tables) if tables else 'the whole catalog'}; Ctrl-C ends it")
            try:
                while not asked_to_end:
                    time.sleep(_LOOK_SECONDS)
                say("ending when the groups under way are committed")
            finally:
                service.stop()


@contextmanager
def _on_signals(act: Callable[[], None], numbers: Sequence[signal.Signals]) -> Iterator[None]:
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


@contextmanager
def _session(wishes: SessionWishes, later: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """The active session, left as it was found, or one that lives as long as the command.

    Args:
        wishes: what the command was told.
        later: settings that hold once the session is attached, and not yet while it is.
    """
    asked = dict(wishes.conf)
    if wishes.progress is not None:
        asked[PROGRESS_KEY] = str(wishes.progress).lower()
    present = SparkSession.getActiveSession()
    if present is None:
        # The service that attach would start is for applications that stay.
        spark = _new_session({**asked, SERVICE_ENABLED_KEY: "false"}, wishes.log_level)
        try:
            attach(spark)
            _set(spark, later or {})
            yield spark
        finally:
            spark.stop()
        return
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


def _new_session(conf: Mapping[str, str], log_level: str) -> SparkSession:
    # pyspark logs the JVM's stack of each error that it raises; ours are one line.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder
    if _SUBMITTED not in os.environ:
        # Spark's own progress would be drawn over ours.
        builder = builder.appName("use-spark").master("local[*]").config("spark.ui.showConsoleProgress", "false")
    for key, value in conf.items():
        builder = builder.config(key, value)
    if _SUBMITTED not in os.environ:
        builder = configure(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    return spark
