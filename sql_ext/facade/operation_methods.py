"""Operations as methods of a table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_args, get_origin, get_type_hints

from pyspark.sql import SparkSession

from procedures.declare.docstrings import Docstring
from procedures.declare.operation import Operation
from procedures.declare.signature import DETAILS
from sql_ext.attachment import call
from sql_ext.facade.rows import typed_rows

P = ParamSpec("P")
R = TypeVar("R")
_Method = TypeVar("_Method", bound=Callable[..., Any])


class TableMethods(Protocol):
    """An object whose methods are about one table."""

    @property
    def spark(self) -> SparkSession:
        """Session that it uses."""

    @property
    def name(self) -> str:
        """Full name of the table."""


def rows_of(spark: SparkSession, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls an operation and returns its typed rows.

    Args:
        spark: an attached session, or a client of one.
        operation: what to call.
        *args: as the function of the operation takes them.
        **kwargs: the same.

    Raises:
        UseError: the operation failed or rejected an argument.
    """
    arguments = inspect.signature(operation.function).bind(None, *args, **kwargs).arguments
    _, *names = arguments
    given = {name: arguments[name] for name in names}
    if operation.short:
        given[DETAILS] = True
    rows: Any = typed_rows(operation.row, call(spark, operation.name, **given))
    result: R = rows[0] if operation.returns_one else rows
    return result


def operation_method(operation: Operation[Concatenate[str, P], R]) -> Callable[Concatenate[TableMethods, P], R]:
    """Returns a method of a table that calls an operation, with its signature and docstring.

    Args:
        operation: its first parameter is the table.
    """

    def method(self: TableMethods, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return rows_of(self.spark, operation, self.name, *args, **kwargs)

    function = operation.function
    signature, hints = inspect.signature(function), get_type_hints(function)
    _, _, *parameters = signature.parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *(p.replace(annotation=_written(hints[p.name])) for p in parameters)],
        return_annotation=_written(hints["return"]),
    )
    method.__name__ = operation.name
    method.__doc__ = operation.docstring.text(_sentences(operation, [p.name for p in parameters]))
    return method


def with_arguments_of(operation: Operation[..., Any]) -> Callable[[_Method], _Method]:
    """Returns a decorator that documents the arguments of a method with the sentences of an operation.

    Args:
        operation: has a parameter for each of the method.
    """

    def documented(method: _Method) -> _Method:
        names = list(inspect.signature(method).parameters)[1:]
        method.__doc__ = Docstring.of(method.__doc__ or "").text(_sentences(operation, names))
        return method

    return documented


def _sentences(operation: Operation[..., Any], names: Iterable[str]) -> dict[str, str]:
    sentences = {p.name: p.doc for p in operation.parameters}
    return {name: sentences[name] for name in names}


def _written(hint: Any) -> str:
    """Returns a type as an annotation in the source."""
    if hint is Ellipsis:
        return "..."
    if hint is NoneType:
        return "None"
    arguments = [_written(argument) for argument in get_args(hint)]
    if isinstance(hint, type) and not arguments:
        return hint.__name__
    if get_origin(hint) in (list, tuple, dict):
        return f"{get_origin(hint).__name__}[{', '.join(arguments)}]"
    return " | ".join(arguments)
