"""Execution of commands with Spark."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from catalog.jvm.java_errors import as_one_line
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables import VIRTUAL_TABLES
from procedures.calls import registry
from procedures.calls.optimize import OPTIMIZE
from procedures.declare.runs import CLI
from procedures.declare.signature import DETAILS, Signature
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.process.application import Application, application
from procedures.service.ended_run import log_problems
from procedures.service.service_metrics import Sample, ServiceMetrics
from sql_ext.attachment import attach
from sql_ext.commands.exits import SuggestedNameError
from sql_ext.commands.gains import gain_text, sample_share
from sql_ext.commands.output import Row, say
from sql_ext.commands.query_result import QueryResult
from sql_ext.commands.run_lines import RunLines
from sql_ext.commands.server_session import with_server_defaults
from sql_ext.commands.session_overview import overview
from sql_ext.commands.session_settings import SessionSettings, for_metadata
from sql_ext.commands.sessions import SERVICE_ENABLED_KEY, on_signals, session
from sql_ext.commands.suggestions import suggestion
from sql_ext.commands.table_size import is_small
from sql_ext.commands.waiting import waiting
from sql_ext.dashboard.address import DashboardAddress, OpenPort, open_port
from sql_ext.driver_process import serve_until
from sql_ext.lifetime import Lifetime
from sql_ext.server.metrics_address import MetricsAddress
from sql_ext.server.metrics_endpoint import metrics_endpoint
from sql_ext.server.serving import Endpoints, serve
from sql_ext.server.settings import NONE, ServerSettings
from sql_ext.server.token import read_or_make_token

if TYPE_CHECKING:
    from procedures.service.service import Service

# Procedures that read no rows of a table.
_ON_METADATA = frozenset(
    (
        *("cancel", "clustering_information", "drop_index", "health", "help", "protect", "resume", "status", "suspend"),
        "unprotect",
    )
)
# Procedures that draw a progress bar themselves.
_WITH_BAR = ("compact", "purge")
# To plan two samples takes some seconds.
_LONG_RUN_MS = 30_000
_STOPPING = b"use-spark: stopping after the current groups are committed; a second signal stops at once\n"


class Runner:
    """Runs commands with Spark; tests of the command line pass a fake."""

    def optimize(
        self,
        arguments: Mapping[str, Any],
        session_settings: SessionSettings,
        tell: Callable[[str], None] | None = None,
    ) -> list[Row]:
        """Optimizes a table, as ``CALL use.optimize`` does, with trigger ``cli``.

        Args:
            arguments: a value for each parameter of the procedure.
            session_settings: settings of the session.
            tell: gets one line about what was gained, if anything was committed; None = nobody reads it.

        Returns:
            The rows of the report.

        Raises:
            UseError: as ``CALL use.optimize``; arguments are checked before a session is created.
        """
        # The settings are not checked with the declaration: a client does not know the strategies of its server.
        checked = OPTIMIZE.checked({**arguments, DETAILS: True})
        OptimizeSettings.of(checked)
        if checked["dry_run"] or is_small(checked["table"], session_settings.warehouse):
            session_settings = for_metadata(session_settings)
        with session(session_settings) as spark, as_one_line(spark), _stopped_between_groups():
            rows: list[Row] = [row.asDict() for row in OPTIMIZE.call(spark, checked, CLI).collect()]
            if tell is not None and (text := gain_text(rows, *_shares(spark, checked["table"], rows))):
                tell(text)
            return rows

    def call(self, declared: Signature, arguments: Mapping[str, Any], session_settings: SessionSettings) -> list[Row]:
        """Calls a procedure, as ``CALL use.<name>`` does.

        Args:
            declared: of the procedure, whose name is looked up in the registry.
            arguments: values by parameter.
            session_settings: settings of the session.

        Raises:
            UseError: as the procedure; arguments are checked before a session is created.
        """
        procedure = registry.procedure(declared.name)
        checked = procedure.checked({**arguments, DETAILS: True} if procedure.short else arguments)
        if procedure.name in _ON_METADATA:
            session_settings = for_metadata(session_settings)
        shown = nullcontext() if procedure.name in _WITH_BAR else waiting(f"{procedure.name} is running")
        with session(session_settings) as spark, as_one_line(spark), _stopped_between_groups(), shown:
            return [row.asDict() for row in procedure.call(spark, checked, CLI).collect()]

    def overview(self, name: str, session_settings: SessionSettings) -> Row:
        """Returns the overview of a table.

        Args:
            name: name or path of the table.
            session_settings: settings of the session.

        Raises:
            TableError: there is no such table.
            IndexUnreadableError: its index cannot be read.
        """
        with session(for_metadata(session_settings)) as spark, as_one_line(spark), waiting("reading metadata"):
            return overview(ManagedTable.find(spark, name))

    def virtual_table(
        self,
        name: str,
        view: str,
        limit: int | None,
        session_settings: SessionSettings,
        show: Callable[[QueryResult], None],
    ) -> None:
        """Shows the rows of a virtual table.

        Args:
            name: name or path of the table.
            view: name of the virtual table.
            limit: maximum number of rows; None = all.
            session_settings: settings of the session.
            show: gets the rows while the session exists.

        Raises:
            TableError: there is no such table.
            IndexUnreadableError: its index cannot be read.
        """
        with session(for_metadata(session_settings)) as spark, as_one_line(spark):
            with waiting("reading metadata"):
                result = QueryResult.of(VIRTUAL_TABLES[view].rows(ManagedTable.find(spark, name)), limit)
            show(result)

    def statements(
        self,
        texts: Sequence[str],
        limit: int | None,
        session_settings: SessionSettings,
        show: Callable[[QueryResult], None],
    ) -> bool:
        """Runs SQL statements in order.

        The first SIGINT or SIGTERM lets a running optimization stop at a boundary between groups and starts no further
        statement. If no optimization is running, the signal has its usual effect.

        Args:
            texts: the statements.
            limit: maximum number of rows of each; None = all.
            session_settings: settings of the session.
            show: gets the rows of a statement before the next one starts.

        Returns:
            Whether all statements ran to their end.
        """
        stopped: list[bool] = []

        def stop(number: signal.Signals) -> None:
            if _stop_runs(number):
                stopped.append(True)
                _announce_stop()

        with session(session_settings) as spark, ExitStack() as stack:
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.enter_context(on_signals(partial(stop, number), (number,)))
            for text in texts:
                show(QueryResult.of(_query(spark, text), limit))
                if stopped:
                    return False
        return True

    def serve(
        self,
        tables: Sequence[str],
        session_settings: SessionSettings,
        metrics_address: MetricsAddress | None = None,
        dashboard_address: DashboardAddress | None = None,
        *,
        metrics_tables: int = 0,
        is_quiet: bool = False,
    ) -> None:
        """Runs the automatic service until SIGINT or SIGTERM, then stops it at a boundary between groups.

        Args:
            tables: names or paths; the whole catalog if empty.
            session_settings: settings of the session.
            metrics_address: where to serve metrics; None = nowhere.
            dashboard_address: where to serve the dashboard; None = nowhere.
            metrics_tables: number of tables with metrics of their own; 0 = no metrics by table.
            is_quiet: whether to print no line for each run; errors are still logged.

        Raises:
            UseError: the metrics or the dashboard cannot be served, raised before a session is created; or Spark has
                stopped.
        """
        from procedures.service.service import Service
        from sql_ext.dashboard.server import dashboard

        app = application()
        is_read = metrics_address is not None or dashboard_address is not None
        metrics = ServiceMetrics(metrics_tables) if is_read else None
        samples = None if metrics is None else partial(_samples, metrics, app)
        services: list[Service] = []

        # Not a threading.Event: the thread that the signal handler interrupts may hold its lock.
        asked_to_end: list[bool] = []
        with ExitStack() as stack:
            port = None if dashboard_address is None else stack.enter_context(open_port(dashboard_address))
            if metrics_address is not None and samples is not None:
                url = stack.enter_context(metrics_endpoint(metrics_address, samples, partial(_problem, services)))
                say(f"metrics: {url}")
            session_settings = replace(session_settings, lifetime=Lifetime.SERVER)
            spark = stack.enter_context(session(session_settings, {SERVICE_ENABLED_KEY: "true"}))
            stack.enter_context(on_signals(lambda: asked_to_end.append(True), (signal.SIGINT, signal.SIGTERM)))
            on_run = log_problems if is_quiet else RunLines(say)
            service = Service(spark, tables=list(tables) or None, metrics=metrics, on_run=on_run)
            service.start()
            services.append(service)
            say(f"serving {', '.join(tables) if tables else 'the whole catalog'}; Ctrl-C stops it")
            try:
                if port is not None:
                    stack.enter_context(dashboard(port, spark, app, list(tables) or None, samples))
                    _announce(port)
                serve_until(lambda: bool(asked_to_end), spark.sparkContext)
                say("stopping after the current groups are committed")
            finally:
                service.stop()

    def dashboard(self, address: DashboardAddress, session_settings: SessionSettings) -> None:
        """Serves the dashboard until SIGINT or SIGTERM, and optimizes nothing.

        Args:
            address: where to serve it, and for whom.
            session_settings: settings of the session.

        Raises:
            UseError: it cannot be served, raised before a session is created; or Spark has stopped.
        """
        from sql_ext.dashboard.server import dashboard

        # Not a threading.Event: see serve.
        asked_to_end: list[bool] = []
        with ExitStack() as stack:
            port = stack.enter_context(open_port(address))
            spark = stack.enter_context(session(replace(session_settings, lifetime=Lifetime.SERVER)))
            stack.enter_context(on_signals(lambda: asked_to_end.append(True), (signal.SIGINT, signal.SIGTERM)))
            stack.enter_context(dashboard(port, spark, application()))
            _announce(port)
            say("Ctrl-C stops it")
            serve_until(lambda: bool(asked_to_end), spark.sparkContext)

    def thrift(self, settings: ServerSettings, session_settings: SessionSettings) -> None:
        """Serves JDBC and, if configured, Spark Connect, until SIGINT or SIGTERM.

        Args:
            settings: addresses and authentication.
            session_settings: settings of the session.

        Raises:
            UseError: a setting is invalid, a server could not start, or Spark has stopped.
        """
        settings.check(session_settings.conf)
        token = "" if settings.auth == NONE else read_or_make_token(settings.token_file)
        if settings.warning is not None:
            say(f"warning: {settings.warning}")
        asked_to_end: list[bool] = []

        def ready(endpoints: Endpoints) -> None:
            say(f"JDBC: {endpoints.jdbc}")
            if endpoints.connect is not None:
                say(f"Spark Connect: {endpoints.connect}")
            if token:
                say(f"the token for clients is in {settings.token_file.expanduser().absolute()}")
            say("ready; Ctrl-C stops it")

        session_settings = with_server_defaults(session_settings)
        with (
            session(
                session_settings, {SERVICE_ENABLED_KEY: session_settings.conf.get(SERVICE_ENABLED_KEY, "true")}
            ) as spark,
            on_signals(lambda: asked_to_end.append(True), (signal.SIGINT, signal.SIGTERM)),
        ):
            attach(spark)  # this time with the service
            serve(spark, settings, token, ready, lambda: bool(asked_to_end), say)


def _announce(port: OpenPort) -> None:
    for note in port.notes:
        say(note)
    say(f"dashboard: {port.url}")


@contextmanager
def _stopped_between_groups() -> Iterator[None]:
    """SIGTERM stops a run as SIGINT does, and both are announced."""
    with (
        application().runs.announcing_stops(_announce_stop),
        on_signals(partial(_stop_runs, signal.SIGTERM), (signal.SIGTERM,)),
    ):
        yield


def _announce_stop() -> None:
    # Bypass Python's buffers: the signal may arrive while a line is being written to them.
    os.write(2, _STOPPING)


def _stop_runs(number: signal.Signals) -> bool:
    """Asks the live runs to stop between groups; without any, the signal has its usual effect.

    Returns:
        Whether there was a run.
    """
    runs = application().runs.live()
    if not runs:
        signal.raise_signal(number)
    for run in runs:
        run.request_stop("INTERRUPTED", "interrupted")
    return bool(runs)


def _shares(spark: SparkSession, name: str, rows: Sequence[Row]) -> tuple[float | None, float | None]:
    """Returns the shares of a sample before and after a run; unknown after short runs, which would double in length."""
    versions = [row["version"] for row in rows if row["state"] == "committed"]
    if not versions or sum(row["duration_ms"] for row in rows) < _LONG_RUN_MS:
        return None, None
    location = ManagedTable.find(spark, name).location
    return sample_share(spark, location, min(versions) - 1), sample_share(spark, location, max(versions))


def _query(spark: SparkSession, text: str) -> DataFrame:
    """Runs a statement; the error about an unknown table suggests a similar name."""
    try:
        return spark.sql(text)
    except AnalysisException as error:
        name = suggestion(spark, error)
        if name is None:
            raise
        raise SuggestedNameError(error, name) from error


def _samples(metrics: ServiceMetrics, app: Application) -> list[Sample]:
    return metrics.samples(app.automations.all(), app.clock.now())


def _problem(services: Sequence[Service]) -> str | None:
    return services[0].problem() if services else "the service has not started yet"
