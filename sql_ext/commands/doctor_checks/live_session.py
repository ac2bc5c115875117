"""A session that really starts, and a table that is really written to."""

from __future__ import annotations

from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.errors import UseError
from catalog.table.managed_table import ManagedTable
from sql_ext.commands.doctor_checks.finding import FAIL, OK, Finding
from sql_ext.commands.exits import spark_line
from sql_ext.commands.sessions import SessionWishes, session


def session_findings(wishes: SessionWishes, tables: tuple[str, ...]) -> Iterator[Finding]:
    """Starts a session as every command does, calls a procedure from SQL, and probes tables.

    Args:
        wishes: for the session.
        tables: names or paths of tables to which writing is tried.
    """
    try:
        with session(wishes) as spark:
            count = spark.sql("CALL use.help()").count()
            yield Finding("session", OK, f"Spark {spark.version} starts and answers CALL: {count} procedures")
            for table in tables:
                yield table_finding(spark, table)
    except (UseError, PySparkException, Py4JError, RuntimeError) as error:
        text = f"{error.code}: {error.message}" if isinstance(error, UseError) else spark_line(error)
        yield Finding(
            "session", FAIL, text, "the lines before, on standard error, say more; --log-level=info more still"
        )


def table_finding(spark: SparkSession, name: str) -> Finding:
    """Whether a table is there, and files can be written below it.

    Args:
        spark: an attached session.
        name: of the table, or its path.
    """
    try:
        table = ManagedTable.find(spark, name)
        table.check_writable()
    except UseError as error:
        advice = (
            "give this user the right to write there: optimize, vacuum and events need it"
            if error.code == "USE_WRITE_DENIED"
            else "check the name, --warehouse, and --conf spark.sql.catalogImplementation"
        )
        return Finding("table", FAIL, f"{error.code}: {error.message}", advice)
    return Finding("table", OK, f"{table.name} at {table.location} can be written")
