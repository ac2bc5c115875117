"""Declarations of procedures, from which validation, SQL signature and ``CALL use.help`` are derived."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import InvalidArgumentError
from catalog.jvm.java_errors import as_one_line
from procedures.declare.runs import CALL
from procedures.declare.signature import DETAILS, PARAMETER_TYPES, Signature

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


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
class Procedure(Signature):
    """A procedure as SQL and Python call it.

    Attributes:
        result: DDL of the result rows; a contract with users.
        run: runs the procedure and returns rows of that schema.
        validate: rejects values that are invalid for every table; gets the arguments by name.
        short: columns of the result with ``details => false``, so that rows fit a terminal; all columns when empty.
    """

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
        """Checks the arguments as far as possible without a session; see ``Signature.checked``.

        Args:
            arguments: values by name.

        Returns:
            A value for each parameter.

        Raises:
            UnknownNameError: an argument that is not declared.
            InvalidArgumentError: a value that is not accepted, or a required one missing.
        """
        checked = super().checked(arguments)
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
