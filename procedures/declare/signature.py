"""Names and parameters of procedures, and the check of arguments; without Spark, so that a command line is quick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral
from typing import Any, TypeAlias

from catalog.errors import InvalidArgumentError, UnknownNameError

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


def with_plain_numbers(value: Any) -> Any:
    """Returns a value whose whole numbers of other libraries, such as NumPy's from a row of pandas, are Python's."""
    if isinstance(value, (list, tuple)):
        return [with_plain_numbers(item) for item in value]
    return int(value) if isinstance(value, Integral) and not isinstance(value, int) else value


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
        least: smallest number that is accepted; None = any.
        most: greatest number that is accepted, with ``least``; None = any.
        choices: words that are accepted; any text when empty.
    """

    name: str
    type: str
    doc: str
    default: Any = _REQUIRED
    accepts: PythonTypes = ()
    accepted: str = ""
    not_blank: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

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
            InvalidArgumentError: the value has another type, is NULL and there is no default, or is out of range.
        """
        if value is None:
            if self.required:
                raise InvalidArgumentError.of(self.name, None, expected(self.type, "required"))
            return self.default
        value = with_plain_numbers(value)
        if self.accepts and isinstance(value, self.accepts) and not isinstance(value, bool):
            return value
        if not _fits(value, self.type):
            raise InvalidArgumentError.of(self.name, value, self.accepted or expected(self.type))
        if self.type == "DOUBLE":
            value = self._float(value)
        if self.not_blank:
            self._refuse_blank(value)
        if self.choices and value not in self.choices:
            raise InvalidArgumentError.of(self.name, value, f"one of {', '.join(self.choices)}")
        if self.least is not None and not self.least <= value <= (math.inf if self.most is None else self.most):
            raise InvalidArgumentError.of(self.name, value, self._range(self.least))
        return value

    def _float(self, value: Any) -> float:
        try:
            return float(value)
        except (ValueError, OverflowError) as error:  # a signaling NaN, or a number with too many digits
            raise InvalidArgumentError.of(self.name, value, self.accepted or expected(self.type)) from error

    def _range(self, least: float) -> str:
        number = "a whole number" if self.type in _WHOLE_NUMBERS else "a number"
        return f"{number} of at least {least:,}" if self.most is None else f"{number} from {least:,} to {self.most:,}"

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
class Signature:
    """How a procedure is called.

    Attributes:
        name: ``CALL use.<name>``.
        doc: what it does, one or two sentences.
        parameters: in positional order; required ones first.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]

    @property
    def signature(self) -> str:
        """One line that shows how to call it."""
        return f"use.{self.name}({', '.join(p.signature for p in self.parameters)})"

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Checks names and types of arguments.

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
        return {name: p.check(arguments.get(name)) for name, p in by_name.items()}
