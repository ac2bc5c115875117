"""The object that the JVM calls in Python. It converts values and errors, and does nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from py4j.java_collections import JavaList, JavaMap
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import UseError
from catalog.jvm.java_values import JavaValue, java_data, java_map

# Making the session of a request takes requests to the JVM of its own, and planning needs none.
AskingSession: TypeAlias = Callable[[], SparkSession]


@dataclass(frozen=True)
class Refusal:
    """An error that the shim throws as an AnalysisException.

    Attributes:
        condition: code of the error.
        sql_state: SQLSTATE.
        message: one line.
    """

    condition: str
    sql_state: str
    message: str


class PythonHandler:
    """Implements the shim's ``PythonHandler`` over Py4J.

    Args:
        answer: gets the operation, what makes the session that asks, and the arguments by name, with Java collections
            as Python ones. Returns a DataFrame, a text, None, a refusal, or an exception of the JVM, which the shim
            throws as it is. It must not raise: an exception would cross the border with the stack of Py4J.
    """

    class Java:
        """Read by Py4J."""

        implements = ("io.usespark.PythonHandler",)

    def __init__(
        self, answer: Callable[[str, AskingSession, Mapping[str, Any]], DataFrame | str | Refusal | JavaValue]
    ) -> None:
        self._answer = answer

    def handle(self, operation: str, java_session: JavaValue, arguments: str, objects: JavaValue) -> JavaValue:
        """Answers one call; see the Java interface."""
        session = partial(_session, java_session)
        others = {} if objects is None else _to_python(objects)
        answer = self._answer(operation, session, json.loads(arguments) | others)
        if isinstance(answer, Refusal):
            fields = {"condition": answer.condition, "sqlState": answer.sql_state, "message": answer.message}
            return java_map(session(), fields)
        return java_data(answer) if isinstance(answer, DataFrame) else answer


def _session(java_session: JavaValue) -> SparkSession:
    return SparkSession(_context(), java_session)


def _context() -> SparkContext:
    """The running context: a notebook may have stopped the one of the attachment and started another."""
    context = SparkContext._active_spark_context
    if context is None:
        raise UseError("No SparkContext is running.")
    return context


def _to_python(value: JavaValue) -> Any:
    """Py4J collections as plain ones."""
    # Only the types tell: a Java object claims to have any attribute that it is asked for.
    if isinstance(value, JavaMap):
        return {str(key): _to_python(value[key]) for key in _keys(value)}
    if isinstance(value, JavaList):
        return [_to_python(value[i]) for i in range(len(value))]
    return value


def _keys(values: JavaMap) -> list[Any]:
    """The keys of a Java map. Its own iterator ends with an exception of the JVM, which costs 40 ms to convert."""
    keys = values.keySet().toArray()
    return [keys[i] for i in range(len(keys))]
