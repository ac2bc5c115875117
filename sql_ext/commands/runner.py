"""What commands do with Spark."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any, cast

import click

from catalog.errors import IndexUnreadableError
from catalog.jvm.java_errors import as_one_line
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables import VIRTUAL_TABLES
from otree.errors import IndexFormatError
from procedures.application import application
from procedures.declaration import Procedure
from procedures.optimizer.engine import optimize
from procedures.optimizer.optimize_settings import OptimizeSettings
from procedures.optimizer.runs import CLI, Run
from sql_ext.attachment import attach
from sql_ext.commands.answers import Answer
from sql_ext.commands.output import Row, say
from sql_ext.commands.overview import overview
from sql_ext.commands.server_session import for_a_server
from sql_ext.commands.sessions import SERVICE_ENABLED_KEY, SessionWishes, on_signals, session
from sql_ext.server.serving import Endpoints, serve
from sql_ext.server.settings import NONE, ServerSettings
from sql_ext.server.token import read_or_make_token

_LOOK_SECONDS = 0.2
_STOPPING = b"use-spark: stopping when the groups under way are committed; once more ends it at once\n"


class _SpokenRun(Run):
    """A run that tells the terminal when it was asked to stop."""

    def request_stop(self, code: str, message: str) -> None:
        """See ``Run.request_stop``."""
        if self.stop_reason is None:
            # Not through Python's buffers: a signal may come while a line is being written to them.
            os.write(2, _STOPPING)
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
        with session(wishes) as spark, as_one_line(spark):
            try:
                table = ManagedTable.find(spark, arguments["table"])
                run = _SpokenRun.of(table, CLI, settings.parameters, application().clock)
                with on_signals(lambda: run.request_stop("INTERRUPTED", "interrupted"), (signal.SIGTERM,)):
                    return [asdict(row) for row in optimize(table, settings, run)]
            except IndexFormatError as error:
                raise IndexUnreadableError(str(error)) from error

    def call(self, procedure: Procedure, arguments: Mapping[str, Any], wishes: SessionWishes) -> list[Row]:
        """Calls a procedure, as ``CALL use.<name>`` does.

        Args:
            procedure: as declared.
            arguments: by its parameters.
            wishes: for the session.

        Raises:
            UseError: as the procedure; what needs no session is refused before one is made.
        """
        checked = procedure.checked(arguments)
        with session(wishes) as spark, as_one_line(spark):
            return [row.asDict() for row in procedure.call(spark, checked, CLI).collect()]

    def overview(self, name: str, wishes: SessionWishes) -> Row:
        """What there is to say of a table at first sight.

        Args:
            name: of the table, or its path.
            wishes: for the session.

        Raises:
            TableError: there is no such table.
            IndexUnreadableError: its index cannot be read.
        """
        with session(wishes) as spark, as_one_line(spark):
            try:
                return overview(ManagedTable.find(spark, name))
            except IndexFormatError as error:
                raise IndexUnreadableError(str(error)) from error

    def virtual_table(
        self, name: str, view: str, limit: int | None, wishes: SessionWishes, show: Callable[[Answer], None]
    ) -> None:
        """The rows of a virtual table.

        Args:
            name: of the table, or its path.
            view: name of the virtual table.
            limit: most rows; None = all.
            wishes: for the session.
            show: gets the rows while the session is there.

        Raises:
            TableError: there is no such table.
            IndexUnreadableError: its index cannot be read.
        """
        with session(wishes) as spark, as_one_line(spark):
            try:
                show(Answer.of(VIRTUAL_TABLES[view].rows(ManagedTable.find(spark, name)), limit))
            except IndexFormatError as error:
                raise IndexUnreadableError(str(error)) from error

    def statements(
        self, texts: Sequence[str], limit: int | None, wishes: SessionWishes, show: Callable[[Answer], None]
    ) -> bool:
        """Runs statements of SQL, one after the other.

        The first SIGINT or SIGTERM lets an optimization under way end at a boundary between groups and begins no
        further statement; where none is under way, it does what it does without us.

        Args:
            texts: the statements.
            limit: most rows of each; None = all.
            wishes: for the session.
            show: gets the rows of a statement before the next one begins.

        Returns:
            Whether all were run to their ends.
        """
        stopped: list[bool] = []

        def stop(number: signal.Signals) -> None:
            if not application().runs.live():
                signal.raise_signal(number)
                return
            stopped.append(True)
            os.write(2, _STOPPING)
            for run in application().runs.live():
                run.request_stop("INTERRUPTED", "interrupted")

        with session(wishes) as spark, ExitStack() as stack:
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.enter_context(on_signals(partial(stop, number), (number,)))
            for text in texts:
                show(Answer.of(spark.sql(text), limit))
                if stopped:
                    return False
        return True

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
            session(wishes, {SERVICE_ENABLED_KEY: "true"}) as spark,
            on_signals(lambda: asked_to_end.append(True), (signal.SIGINT, signal.SIGTERM)),
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

    def thrift(self, settings: ServerSettings, wishes: SessionWishes) -> None:
        """Serves JDBC, and Spark Connect where asked for, until SIGINT or SIGTERM.

        Args:
            settings: where to listen and whom to let in.
            wishes: for the session.

        Raises:
            UseError: the settings are not accepted, or a server could not start.
        """
        settings.check(wishes.conf)
        token = "" if settings.auth == NONE else read_or_make_token(settings.token_file)
        if settings.warning is not None:
            say(f"warning: {settings.warning}")
        asked_to_end: list[bool] = []

        def ready(endpoints: Endpoints) -> None:
            say(f"JDBC: {endpoints.jdbc}")
            if endpoints.connect is not None:
                say(f"Spark Connect: {endpoints.connect}")
            if token:
                say(f"the token that clients give is in {settings.token_file.expanduser().absolute()}")
            say("ready; Ctrl-C ends it")

        wishes = for_a_server(wishes)
        with (
            session(wishes, {SERVICE_ENABLED_KEY: wishes.conf.get(SERVICE_ENABLED_KEY, "true")}) as spark,
            on_signals(lambda: asked_to_end.append(True), (signal.SIGINT, signal.SIGTERM)),
        ):
            attach(spark)  # with its service this time
            serve(spark, settings, token, ready, lambda: bool(asked_to_end), say)


def runner_of(ctx: click.Context) -> Runner:
    """The one that the caller of the command line passed as its object, else one with Spark."""
    return Runner() if ctx.obj is None else cast(Runner, ctx.obj)
