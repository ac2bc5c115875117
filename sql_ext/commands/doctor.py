"""``use-spark doctor``."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from catalog.errors import MissingPackageError, NotSupportedError
from sql_ext.commands.doctor_checks import folders, network, programs, spark_setup
from sql_ext.commands.doctor_checks.finding import FAIL, WARN, Finding
from sql_ext.commands.exits import ExitCode, guarded
from sql_ext.commands.hanging_lines import terminal_width
from sql_ext.commands.options import checked_name, examples, format_options, output_format_of, session_options
from sql_ext.commands.output import print_rows
from sql_ext.commands.session_settings import SessionSettings, session_settings_of
from sql_ext.configuration import JARS
from sql_ext.installation import DISTRIBUTION, other_owners
from sql_ext.installed_versions import installed_versions, require_spark, spark_home


def findings_without_session(environment: Mapping[str, str], session_settings: SessionSettings) -> Iterator[Finding]:
    """Yields the findings of all checks that need no JVM.

    Args:
        environment: variables.
        session_settings: settings of the session.
    """
    yield programs.python_version(sys.version_info[:3])
    yield programs.java(environment)
    yield programs.package_names(other_owners())
    try:
        pyspark = require_spark()
    except MissingPackageError as error:
        yield Finding("spark", FAIL, *error.message.split(": ", 1))
        return
    home = spark_home(environment)
    yield spark_setup.spark_home(environment, Path(str(pyspark.__file__)).parent, str(pyspark.__version__))
    yield spark_setup.submit_arguments(environment)
    yield from _pair(environment, home, session_settings)
    yield spark_setup.pinned_threads(environment)
    yield network.loopback()
    yield network.host_name(environment)
    yield network.ports()
    yield from folders.check_folders(environment, session_settings.conf, session_settings.warehouse)


def _pair(environment: Mapping[str, str], home: Path, session_settings: SessionSettings) -> Iterator[Finding]:
    """Yields the findings about the pair of Spark and Delta, and about the jars for it."""
    try:
        versions = installed_versions(environment)
    except NotSupportedError as error:
        yield Finding("versions", FAIL, str(error), "install a Spark and a Delta of one line")
        return
    yield from spark_setup.class_path(environment, home, versions.has_delta)
    yield spark_setup.versions(versions.spark, spark_setup.scala_version(home), versions.delta)
    jar = JARS / versions.shim
    yield spark_setup.shim(jar, importlib.metadata.version(DISTRIBUTION))
    if jar.is_file() and not versions.has_delta:
        yield spark_setup.delta_jars(environment, home, versions.delta_coordinates, session_settings.conf)


def findings(session_settings: SessionSettings, tables: tuple[str, ...], with_session: bool) -> Iterator[Finding]:
    """Yields all findings.

    Args:
        session_settings: settings of the session.
        tables: names or paths of tables whose write access is checked.
        with_session: whether to start a session.
    """
    failed = False
    for finding in findings_without_session(os.environ, session_settings):
        failed = failed or finding.state == FAIL
        yield finding
    if not with_session:
        return
    if failed:
        yield Finding("session", WARN, "not checked", "fix the failed checks and run doctor again")
        return
    from sql_ext.commands.doctor_checks.live_session import session_findings

    yield from session_findings(session_settings, tables)


def _about(session_settings: SessionSettings, table: str) -> Iterator[Finding]:
    """Yields the findings about a table."""
    guarded(require_spark)
    from sql_ext.commands.doctor_checks.live_session import findings_about

    yield from findings_about(session_settings, table)


def _doctor(
    ctx: click.Context, /, table: str | None, tables: tuple[str, ...], with_session: bool, **options: Any
) -> None:
    if table is not None and (tables or not with_session):
        raise click.UsageError(f"{table} is checked alone: omit --table and --no-session.", ctx)
    output_format = output_format_of(options)
    session_settings = session_settings_of(options)
    states = []

    def rows() -> Iterator[Finding]:
        seen = findings(session_settings, tables, with_session) if table is None else _about(session_settings, table)
        for finding in seen:
            states.append(finding.state)
            yield finding

    if output_format.is_for_programs:
        print_rows(map(asdict, rows()), output_format)
    else:
        width = terminal_width()
        for finding in rows():
            click.echo(finding.line if width is None else finding.fitted(width))
    ctx.exit(ExitCode.FAILED if FAIL in states else ExitCode.DONE)


COMMAND = click.Command(
    "doctor",
    callback=click.pass_context(_doctor),
    params=[
        click.Argument(["table"], required=False, metavar="[TABLE]", callback=checked_name),
        click.Option(
            ["--table-location", "--table", "tables"],
            multiple=True,
            metavar="TABLE",
            help="Also checks write access to this table, by name or path. Can be repeated.",
        ),
        click.Option(
            ["--session/--no-session", "with_session"], default=True, help="Whether to start a Spark session."
        ),
        *format_options(),
        *session_options(),
    ],
    help="Checks Java, packages, jars, class path, network and write access, starts a session, and says how to fix "
    "problems.\n\nWith TABLE, shows instead what is set on this table, what is not, and what to do first.",
    epilog=examples(
        "use-spark doctor",
        "use-spark doctor --warehouse /data/wh flights",
        "use-spark doctor --warehouse /data/wh --table flights",
        "use-spark doctor --no-session --json",
    )
    + "\n\nExit codes: 0 no check failed, 1 a check failed.",
)
