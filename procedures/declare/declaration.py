"""Declarations of procedures, from which validation, SQL signature and ``CALL use.help`` are derived."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.jvm.java_errors import as_one_line
from procedures.declare.runs import CALL

PARAMETER_TYPES = (
    "STRING",
    "INT",
    "BIGINT",
    "DOUBLE",
    "BOOLEAN",
    "ARRAY<STRING>",
    "ARRAY<BIGINT>",
    "MAP<STRING,STRING>",
)
PythonTypes: TypeAlias = tuple[type, ...]
_REQUIRED = object()
_WHOLE_NUMBERS = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1)}
_ITEMS = {"ARRAY<STRING>": "STRING", "ARRAY<BIGINT>": "BIGINT"}
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


def _fits(value: Any, declared: str) -> bool:
    """Whether a parameter of the declared type accepts a value, in SQL and in Python; values are not cast."""
    if isinstance(value, bool):
        return declared == "BOOLEAN"
    if isinstance(value, int):
        low, high = _WHOLE_NUMBERS.get(declared, (0, -1))
        return declared == "DOUBLE" or low <= value <= high
    if isinstance(value, (list, tuple)):
        item = _ITEMS.get(declared)
        return item is not None and all(_fits(v, item) for v in value)
    if isinstance(value, dict):
        return declared == "MAP<STRING,STRING>" and all(isinstance(v, str) for pair in value.items() for v in pair)
    if isinstance(value, (float, Decimal)):  # 0.5 is a decimal in SQL
        return declared == "DOUBLE"
    return declared == "STRING" and isinstance(value, str)


def expected(declared: str, verb: str = "expected") -> str:
    """Returns a phrase that states the expected type, with the range of whole numbers."""
    text = f"{'an' if declared[0] in 'AI' else 'a'} {declared} is {verb}"
    if declared not in _WHOLE_NUMBERS:
        return text
    low, high = _WHOLE_NUMBERS[declared]
    return f"{text} (a whole number from {low} to {high})"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure.

    Attributes:
        name: snake_case, the same in SQL and Python.
        type: one of ``PARAMETER_TYPES``.
        doc: one sentence.
        default: Python value; absent for a required parameter.
        accepts: types of Python whose values are accepted beside those of ``type``; the procedure tells them apart.
        accepted: what values are accepted, for errors; the type when empty.
        not_blank: what is accepted in place of blank text, for errors; blank text is accepted when empty.
    """

    name: str
    type: str
    doc: str
    default: Any = _REQUIRED
    accepts: PythonTypes = ()
    accepted: str = ""
    not_blank: str = ""

    @property
    def required(self) -> bool:
        """Whether the caller must give it."""
        return self.default is _REQUIRED

    @property
    def default_sql(self) -> str | None:
        """The default as SQL text; None when required."""
        if self.required:
            return None
        if self.default is None:
            return "NULL"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if isinstance(self.default, str):
            return "'" + self.default.replace("'", "''") + "'"
        if isinstance(self.default, Mapping):
            return f"CAST(map() AS {self.type})"
        return f"CAST({self.default} AS {self.type})"

    @property
    def signature(self) -> str:
        """``name TYPE = default``, as ``use.help`` prints it."""
        return f"{self.name} {self.type}" + ("" if self.required else f" = {self.default_text}")

    @property
    def default_text(self) -> str:
        """The default as text for display; '' when required."""
        if isinstance(self.default, Mapping):
            return "map()"
        if isinstance(self.default, (int, float)) and not isinstance(self.default, bool):
            return str(self.default)
        return self.default_sql or ""

    def check(self, value: Any) -> Any:
        """Returns the value if it fits the declared type, or the default for NULL.

        Raises:
            InvalidArgumentError: the value has another type, is NULL and there is no default, or is blank.
        """
        if value is None:
            if self.required:
                raise InvalidArgumentError.of(self.name, None, expected(self.type, "required"))
            return self.default
        if self.accepts and isinstance(value, self.accepts) and not isinstance(value, bool):
            return value
        if not _fits(value, self.type):
            raise InvalidArgumentError.of(self.name, value, self.accepted or expected(self.type))
        if self.not_blank:
            self._refuse_blank(value)
        return float(value) if self.type == "DOUBLE" else value

    def _refuse_blank(self, value: str | list[str]) -> None:
        texts = [value] if isinstance(value, str) else value
        if not all(text.strip() for text in texts):
            shown = value if isinstance(value, str) else f"array({', '.join(map(repr, value))})"
            raise InvalidArgumentError.of(self.name, shown, self.not_blank)


DETAILS = "details"


def details_parameter(*others: str, default: bool) -> Parameter:
    """The parameter that says whether a procedure shows all its result columns.

    Args:
        others: columns that are shown only with it.
        default: its default.
    """
    return Parameter(DETAILS, "BOOLEAN", f"With false, rows fit a terminal, without {', '.join(others)}.", default)


@dataclass(frozen=True)
class Call:
    """One call of a procedure.

    Attributes:
        spark: the session of the caller.
        arguments: the checked arguments by name.
        trigger: what started it: ``call`` or ``cli``.
    """

    spark: SparkSession
    arguments: Mapping[str, Any]
    trigger: str = CALL

    def __getitem__(self, name: str) -> Any:
        """The argument's value, or the parameter's default."""
        return self.arguments[name]


def accept_all(arguments: Mapping[str, Any]) -> None:
    """Accepts all arguments: the default for procedures that need only the check of types."""


@dataclass(frozen=True)
class Procedure:
    """A procedure as SQL and Python call it.

    Attributes:
        name: ``CALL use.<name>``.
        doc: what it does, one or two sentences.
        parameters: in positional order; required ones first.
        result: DDL of the result rows; a contract with users.
        run: runs the procedure and returns rows of that schema.
        validate: rejects values that are invalid for every table; gets the arguments by name.
        short: columns of the result with ``details => false``, so that rows fit a terminal; all columns when empty.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    result: str
    run: Callable[[Call], DataFrame]
    validate: Callable[[Mapping[str, Any]], None] = accept_all
    short: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Rejects a declaration that SQL could not call."""
        for name in (self.name, *(p.name for p in self.parameters)):
            if not _IDENTIFIER.fullmatch(name):
                raise InvalidArgumentError.of("name", name, "lower-case letters, digits and underscores")
        for parameter in self.parameters:
            if parameter.type not in PARAMETER_TYPES:
                raise InvalidArgumentError.of("type", parameter.type, f"one of {', '.join(PARAMETER_TYPES)}")
        names = [p.name for p in self.parameters]
        if len(set(names)) != len(names):
            raise InvalidArgumentError.of("parameters", ", ".join(names), "each name once")
        if self.short and (DETAILS not in names or not set(self.short) < set(self._columns())):
            accepted = f"some columns of the result, and a parameter {DETAILS}"
            raise InvalidArgumentError.of("short", ", ".join(self.short), accepted)
        required = [p.required for p in self.parameters]
        if required != sorted(required, reverse=True):
            raise InvalidArgumentError.of("parameters", ", ".join(names), "required parameters first")

    @property
    def signature(self) -> str:
        """One line that shows how to call it."""
        return f"use.{self.name}({', '.join(p.signature for p in self.parameters)})"

    @property
    def short_result(self) -> str:
        """DDL of the result rows with ``details => false``."""
        if not self.short:
            return self.result
        columns = self._columns()
        return ", ".join(columns[name] for name in self.short)

    def _columns(self) -> dict[str, str]:
        """Returns the DDL of each result column by name."""
        return {part.split()[0]: part for part in self.result.split(", ")}

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Checks the arguments as far as possible without a session.

        Args:
            arguments: values by name.

        Returns:
            A value for each parameter.

        Raises:
            UnknownNameError: an argument that is not declared.
            InvalidArgumentError: a value that is not accepted, or a required one missing.
        """
        by_name = {p.name: p for p in self.parameters}
        for name in arguments:
            if name not in by_name:
                raise UnknownNameError.of("parameter", name, by_name)
        for name, parameter in by_name.items():
            if parameter.required and name not in arguments:
                raise InvalidArgumentError.missing(name, expected(parameter.type, "required"))
        checked = {name: p.check(arguments.get(name)) for name, p in by_name.items()}
        self.validate(checked)
        return checked

    def call(self, spark: SparkSession, arguments: Mapping[str, Any], trigger: str = CALL) -> DataFrame:
        """Checks the arguments and runs.

        Args:
            spark: the session of the caller.
            arguments: values by name.
            trigger: what started it: ``call`` or ``cli``.

        Raises:
            UnknownNameError: an argument that is not declared.
            InvalidArgumentError: a value that is not accepted, or a required one missing.
            IndexUnreadableError: the table's index cannot be read.
            UseError: Spark failed; the code is Spark's error condition if there is one.
        """
        checked = self.checked(arguments)
        with as_one_line(spark):
            rows = self.run(Call(spark, checked, trigger))
            return rows if not self.short or checked[DETAILS] else rows.select(*self.short)
