"""The session of a command, which it creates or shares, and the signals that stop it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError
from catalog.settings.session_settings import PROGRESS
from procedures.service.service_settings import ENABLED
from sql_ext.attachment import attach
from sql_ext.commands.session_settings import SessionSettings
from sql_ext.commands.waiting import waiting
from sql_ext.driver_process import unless_jvm_has_ended
from sql_ext.local_session import new_session

SERVICE_ENABLED_KEY = ENABLED.name


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
        with waiting("starting Spark"), interrupted_afterwards():
            spark = new_session(
                {**conf, SERVICE_ENABLED_KEY: "false"},
                session_settings.log_level,
                session_settings.warehouse,
                session_settings.lifetime,
            )
        try:
            attach(spark)
            _set(spark, later or {})
            yield spark
        finally:
            with unless_jvm_has_ended():
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


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Makes the first Ctrl-C take effect at the end of the block: a JVM that is being started would stay behind.

    Raises:
        KeyboardInterrupt: at the end.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return
    asked: list[bool] = []
    with on_signals(lambda: asked.append(True), (signal.SIGINT,)):
        yield
    if asked:
        raise KeyboardInterrupt


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        spark.conf.set(key, value)


@contextmanager
def on_signals(act: Callable[[], object], numbers: Sequence[signal.Signals]) -> Iterator[None]:
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
            # A session of Spark that was created meanwhile has set its own.
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)
