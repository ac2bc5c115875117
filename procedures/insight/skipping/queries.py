"""Planning of a query that is given as text, without executing anything."""

from __future__ import annotations

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError, UseError
from catalog.jvm.java_errors import as_one_line
from catalog.jvm.skipping_report import SkippingPlan, command_in, plan_of_query

# The accepted values, for the error about a blank query.
QUERY = "a query is required, such as SELECT … FROM … WHERE …"


def planned_query(spark: SparkSession, query: str) -> SkippingPlan:
    """Parses and plans a query.

    Args:
        spark: session of the caller.
        query: one SELECT, WITH, VALUES or TABLE.

    Raises:
        InvalidArgumentError: the text cannot be parsed, or is a command.
        UseError: Spark cannot analyze the query, with Spark's condition.
    """
    text = checked_query(spark, query)
    with as_one_line(spark):
        return plan_of_query(spark, text)


def checked_query(spark: SparkSession, query: str) -> str:
    """Returns the text of a query without a semicolon at its end.

    Args:
        spark: session of the caller.
        query: one SELECT, WITH, VALUES or TABLE.

    Raises:
        InvalidArgumentError: the text cannot be parsed, or is a command.
    """
    query = query.strip().removesuffix(";")
    if not query.strip():
        raise InvalidArgumentError.of("query", query, QUERY)
    try:
        with as_one_line(spark):
            command = command_in(spark, query)
    except UseError as error:
        reason = f"one query is required, and this cannot be parsed ({error.message.rstrip('.')})"
        raise InvalidArgumentError.of("query", query, reason) from error
    if command is not None:
        raise InvalidArgumentError.of(
            "query", query, f"a query is required, and this is the command {command}; name its SELECT alone"
        )
    return query
