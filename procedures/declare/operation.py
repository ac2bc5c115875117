"""Operations: a procedure declared by the signature and the docstring of one typed function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Concatenate, Generic, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError
from procedures.declare.declaration import Call, Procedure, accept_all
from procedures.declare.docstrings import Docstring
from procedures.declare.result_rows import data_frame_of, ddl_of
from procedures.declare.signature import DETAILS, Parameter, details_parameter

P = ParamSpec("P")
R = TypeVar("R")

_SQL_TYPES: Mapping[Any, str] = {
    str: "STRING",
    int: "BIGINT",
    float: "DOUBLE",
    bool: "BOOLEAN",
    list[str]: "ARRAY<STRING>",
    list[int]: "ARRAY<BIGINT>",
    dict[str, str]: "MAP<STRING,STRING>",
}
_OTHER_ARRAYS = (tuple[str, ...], tuple[int, ...])


@dataclass(frozen=True)
class Constraint:
    """What a parameter declares beside its Python type, as metadata of ``Annotated``.

    Attributes:
        sql: the type in SQL; that of the Python type when empty.
        doc: sentence of a parameter that several operations have; that of the docstring when empty.
        accepted: what values are accepted, for errors.
        not_blank: what is accepted in place of blank text, for errors.
        least: smallest number that is accepted.
        most: greatest number that is accepted, with ``least``.
        choices: words that are accepted.
    """

    sql: str = ""
    doc: str = ""
    accepted: str = ""
    not_blank: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


Int = Annotated[int, Constraint(sql="INT")]
"""A whole number of 32 bits."""
AT_LEAST_ONE = Constraint(least=1)
TableName = Annotated[str, Constraint(doc="Table name, delta.`path` or path.")]
"""The table that an operation is about."""


@dataclass(frozen=True, kw_only=True)
class Operation(Procedure, Generic[P, R]):
    """A procedure that is declared by a function.

    Attributes:
        function: gets the call and the checked arguments by name.
        row: class of the result rows.
        docstring: of the function.
        returns_one: whether the function returns one row, and no list.
    """

    function: Callable[Concatenate[Call, P], R]
    row: type[Any]
    docstring: Docstring
    returns_one: bool


def operation(
    function: Callable[Concatenate[Call, P], R],
    *,
    row: type[Any] | None = None,
    validate: Callable[[Mapping[str, Any]], None] = accept_all,
    short: tuple[str, ...] = (),
    details: bool = True,
) -> Operation[P, R]:
    """Declares a procedure by a function.

    Its name is that of the function. Each parameter after the call is a parameter in SQL, in the same order and with
    the same default; the SQL type follows from the annotation. The first paragraph of the docstring and its ``Args``
    are the documentation. The function returns a row, a list of rows, or a DataFrame.

    Args:
        function: what the procedure does.
        row: class of the rows of a function that returns a DataFrame.
        validate: rejects values that are invalid for every table; gets the arguments by name.
        short: columns of the result with ``details => false``; without it there is no such parameter.
        details: default of ``details``.

    Raises:
        InvalidArgumentError: the function cannot be called by SQL.
    """
    hints = get_type_hints(function, include_extras=True)
    docstring = Docstring.of(function.__doc__ or "")
    _, *declared = inspect.signature(function).parameters.values()
    parameters = [_parameter(p, hints[p.name], docstring.arguments.get(p.name, "")) for p in declared]
    kind = row or next(iter(get_args(hints["return"])), hints["return"])
    if short:
        others = (f.name for f in fields(kind) if f.name not in short)
        parameters.append(details_parameter(*others, default=details))

    def run(call: Call) -> DataFrame:
        arguments = {name: value for name, value in call.arguments.items() if name != DETAILS}
        found: Any = function(call, **arguments)  # type: ignore[call-arg]
        if isinstance(found, DataFrame):
            return found
        return data_frame_of(call.spark, kind, found if isinstance(found, list) else [found])

    return Operation(
        name=function.__name__,
        doc=docstring.summary,
        parameters=tuple(parameters),
        result=ddl_of(kind),
        run=run,
        validate=validate,
        short=short,
        function=function,
        row=kind,
        docstring=docstring,
        returns_one=hints["return"] is kind,
    )


def _parameter(declared: inspect.Parameter, hint: Any, doc: str) -> Parameter:
    types, constraints = _parts(hint)
    kinds = [kind for kind in types if kind is not NoneType and kind not in _OTHER_ARRAYS]
    sql = next((c.sql for c in constraints if c.sql), _SQL_TYPES.get(kinds[0], ""))
    doc = next((c.doc for c in constraints if c.doc), doc)
    if not sql:
        raise InvalidArgumentError.of(declared.name, str(hint), "a type that SQL has")
    if not doc:
        raise InvalidArgumentError.of(declared.name, None, "a sentence in the docstring")
    default = {} if declared.default is None and sql.startswith("MAP") else declared.default
    return Parameter(
        declared.name,
        sql,
        doc,
        **({} if default is inspect.Parameter.empty else {"default": default}),
        accepts=tuple(kinds[1:]),
        accepted=next((c.accepted for c in constraints if c.accepted), ""),
        not_blank=next((c.not_blank for c in constraints if c.not_blank), ""),
        least=next((c.least for c in constraints if c.least is not None), None),
        most=next((c.most for c in constraints if c.most is not None), None),
        choices=next((c.choices for c in constraints if c.choices), ()),
    )


def _parts(hint: Any) -> tuple[list[Any], list[Constraint]]:
    """Returns the alternatives of a type, and the constraints on them."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        types, constraints = _parts(inner)
        return types, [*(m for m in metadata if isinstance(m, Constraint)), *constraints]
    if get_origin(hint) in (Union, UnionType):
        parts = [_parts(part) for part in get_args(hint)]
        return [t for types, _ in parts for t in types], [c for _, constraints in parts for c in constraints]
    return [hint], []
