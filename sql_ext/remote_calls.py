"""Calls of procedures from a Spark Connect client: SQL with parameters, and the same errors as in the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import InvalidArgumentError, NotAttachedError, NotSupportedError, UseError
from catalog.jvm.session import has_jvm
from procedures.calls.registry import procedures
from procedures.declare.signature import with_plain_numbers

# Conditions of Spark 4.2, 4.1 and 4.0 for `use.<name>` without a catalog `use`. With it, USE raises its own error.
_NO_CATALOG = ("UNRESOLVED_ROUTINE", "MISSING_CATALOG_ABILITY.PROCEDURES", "_LEGACY_ERROR_TEMP_1184")


def is_client(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect client, which has no JVM of its own.

    Raises:
        InvalidArgumentError: it is no session.
    """
    if not hasattr(spark, "sql"):
        raise InvalidArgumentError.of("spark", spark, "a SparkSession is expected")
    return not has_jvm(spark)


def refuse_client(spark: SparkSession, what: str) -> None:
    """Rejects a function that needs the Python process of the driver.

    Raises:
        NotSupportedError: the session is a Spark Connect client.
    """
    if is_client(spark):
        raise NotSupportedError(f"{what} needs the driver's own SparkSession, not a Spark Connect client.")


def call_from_client(spark: SparkSession, name: str, arguments: Mapping[str, Any]) -> DataFrame:
    """Runs ``CALL use.<name>`` in the driver that the client is connected to, once, and returns its rows.

    Args:
        spark: a Spark Connect client.
        name: procedure.
        arguments: by name; None stands for the default.

    Raises:
        UseError: the procedure failed or rejected an argument, as in the driver.
    """
    declared = procedures().get(name.lower())
    if declared is not None:  # the server checks procedures that only it knows
        declared.checked(arguments)
    text, values = call_statement(name, {key: value for key, value in arguments.items() if value is not None})
    try:
        return spark.sql(text, values)
    except AnalysisException as error:
        raise _typed(error) from None


def call_statement(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns a call as SQL; this function is pure.

    Args:
        name: procedure.
        arguments: strings, numbers, booleans, lists of strings or whole numbers, and dictionaries of strings, by name.

    Returns:
        The statement, and the values of its parameters by name: no value is part of the text.
    """
    values: dict[str, Any] = {}

    def marker(value: Any) -> str:
        key = f"v{len(values)}"
        values[key] = value
        return f":{key}"

    def expression(value: Any) -> str:
        if isinstance(value, Mapping):
            pairs = ", ".join(f"{marker(k)}, {marker(v)}" for k, v in value.items())
            return f"CAST(map({pairs}) AS MAP<STRING, STRING>)"
        if isinstance(value, (list, tuple)):
            item = "BIGINT" if value and all(isinstance(v, int) for v in value) else "STRING"
            return f"CAST(array({', '.join(map(marker, value))}) AS ARRAY<{item}>)"
        return marker(value)

    plain = {key: with_plain_numbers(value) for key, value in arguments.items()}
    arguments_sql = ", ".join(f"{_quoted(key)} => {expression(value)}" for key, value in plain.items())
    return f"CALL use.{_quoted(name)}({arguments_sql})", values


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _typed(error: AnalysisException) -> Exception:
    """Converts an error of USE to the exception that the driver raised; returns any other error unchanged."""
    code, sql_state = error.getCondition(), error.getSqlState()
    if code in _NO_CATALOG:
        return NotAttachedError.at_server()
    if code is None or not code.startswith("USE_"):
        return error
    # The server's stack trace follows the message if the client requests it.
    text = str(error).partition("\n\nJVM stacktrace:")[0]
    return UseError(
        text.removeprefix(f"[{code}] ").removesuffix(f" SQLSTATE: {sql_state}"), code=code, sql_state=sql_state
    )
