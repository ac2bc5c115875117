"""``use-spark doctor``."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pyspark

from sql_ext.commands.doctor_checks import folders, network, programs, spark_setup
from sql_ext.commands.doctor_checks.finding import FAIL, WARN, Finding
from sql_ext.commands.doctor_checks.live_session import findings_about, session_findings
from sql_ext.commands.exits import ExitCode
from sql_ext.commands.hanging_lines import terminal_width
from sql_ext.commands.options import checked_name, examples, format_options, output_format_of, session_options
from sql_ext.commands.output import print_rows
from sql_ext.commands.sessions import SessionSettings, session_settings_of
from sql_ext.configuration import JAR, spark_conf
from sql_ext.installation import DISTRIBUTION, other_owners

_PINNED = ("pyspark", "delta-spark")


def pins(requirements: list[str]) -> dict[str, str]:
    """Returns the pinned versions of the two packages that the shim depends on.

    Args:
        requirements: the requirements in the package's metadata.
    """
    matches = (re.match(r"([\w-]+)==([\w.]+)", text) for text in requirements)
    return {pin[1]: pin[2] for pin in matches if pin and pin[1] in _PINNED}


def findings_without_session(environment: Mapping[str, str], session_settings: SessionSettings) -> Iterator[Finding]:
    """Yields the findings of all checks that need no JVM.

    Args:
        environment: variables.
        session_settings: settings of the session.
    """
    pinned = pins(importlib.metadata.requires(DISTRIBUTION) or [])
    package = Path(pyspark.__file__).parent
    yield programs.python_version(sys.version_info[:3])
    yield programs.java(environment)
    yield from programs.packages({name: _installed(name) for name in pinned}, pinned)
    home = Path(environment.get("SPARK_HOME") or package)
    yield programs.package_names(other_owners())
    yield spark_setup.spark_home(environment, package, pinned["pyspark"])
    yield spark_setup.shim(JAR, importlib.metadata.version(DISTRIBUTION))
    yield spark_setup.pinned_threads(environment)
    yield from spark_setup.class_path(environment, home)
    if JAR.is_file():
        conf = spark_conf()
        yield spark_setup.delta_jars(environment, home, conf["spark.jars.packages"], session_settings.conf)
    yield network.loopback()
    yield network.host_name(environment)
    yield network.ports()
    yield from folders.check_folders(environment, session_settings.conf, session_settings.warehouse)


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


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
    yield from session_findings(session_settings, tables)


def _doctor(
    ctx: click.Context, /, table: str | None, tables: tuple[str, ...], with_session: bool, **options: Any
) -> None:
    if table is not None and (tables or not with_session):
        raise click.UsageError(f"{table} is checked alone: omit --table and --no-session.", ctx)
    output_format = output_format_of(options)
    session_settings = session_settings_of(options)
    states = []

    def rows() -> Iterator[Finding]:
        seen = (
            findings(session_settings, tables, with_session)
            if table is None
            else findings_about(session_settings, table)
        )
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
