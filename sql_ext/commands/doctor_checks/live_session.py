"""Checks that start a session and write below a table."""

from __future__ import annotations

from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.errors import TableError, UseError
from catalog.table.managed_table import ManagedTable
from sql_ext.commands.doctor_checks.finding import FAIL, OK, Finding
from sql_ext.commands.doctor_checks.table_setup import TableFacts, options_of, table_findings
from sql_ext.commands.exits import spark_line
from sql_ext.commands.session_settings import SessionSettings, for_metadata
from sql_ext.commands.sessions import session


def session_findings(session_settings: SessionSettings, tables: tuple[str, ...]) -> Iterator[Finding]:
    """Starts a session like every command, calls a procedure from SQL, and checks write access to tables.

    Args:
        session_settings: settings of the session.
        tables: names or paths of tables.
    """
    try:
        with session(for_metadata(session_settings)) as spark:
            count = spark.sql("CALL use.help()").count()
            yield Finding("session", OK, f"Spark {spark.version} starts and runs CALL: {count} procedures")
            for table in tables:
                yield table_finding(spark, table)
    except (UseError, PySparkException, Py4JError, RuntimeError) as error:
        text = f"{error.code}: {error.message}" if isinstance(error, UseError) else spark_line(error)
        yield Finding("session", FAIL, text, "see the earlier lines on standard error, or use --log-level=info")


def findings_about(session_settings: SessionSettings, name: str) -> Iterator[Finding]:
    """Starts a session and says what is set on a table, what is not, and what to do first.

    Args:
        session_settings: settings of the session.
        name: name or path of the table.
    """
    try:
        with session(for_metadata(session_settings)) as spark:
            yield from table_findings(TableFacts.of(spark, name, session_settings.warehouse))
    except (UseError, PySparkException, Py4JError, RuntimeError) as error:
        text = f"{error.code}: {error.message}" if isinstance(error, UseError) else spark_line(error)
        yield Finding("table", FAIL, text, _advice_after(error, options_of(name, session_settings.warehouse)))


def _advice_after(error: Exception, options: str) -> str | None:
    if isinstance(error, TableError) and error.provider == "parquet":
        return f"use-spark index {options} --columns … --convert makes it a Delta table in place"
    if isinstance(error, TableError) and not error.is_missing:
        return None  # the message says what to do
    return "check the name and --warehouse; use-spark doctor checks the installation"


def table_finding(spark: SparkSession, name: str) -> Finding:
    """Checks that a table exists and that files can be written below it.

    Args:
        spark: an attached session.
        name: name or path of the table.
    """
    try:
        table = ManagedTable.find(spark, name)
        table.check_writable()
    except UseError as error:
        advice = (
            "allow this user to write there: optimize, vacuum and events need it"
            if error.code == "USE_WRITE_DENIED"
            else "check the name, --warehouse, and --conf spark.sql.catalogImplementation"
        )
        return Finding("table", FAIL, f"{error.code}: {error.message}", advice)
    return Finding("table", OK, f"{table.name} at {table.location} can be written")
