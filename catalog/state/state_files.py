"""Reading the small JSON files below ``_use/``: a text gives a value or the reason why it has none, never an exception.

Anybody who can write below a table can put anything there: a process that crashed in the middle of writing, another
version, a clock that is wrong, a person with an editor.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from catalog.epoch_millis import LAST_MILLIS
from catalog.errors import first_line
from catalog.jvm.raised_errors import file_errors, spark_errors

logger = logging.getLogger(__name__)


class StateFolder(Protocol):
    """A table's folder with files of ours, as far as it is read: a ``ManagedTable``, or a folder without Spark."""

    @property
    def state_folder(self) -> str:
        """The folder, for messages."""

    def read_state(self, file: str) -> str | None:
        """The text of a file, None when there is none; ``file`` is relative to ``_use/``."""

    def list_state(self, folder: str) -> list[str]:
        """Names of the files in a folder, sorted; none when it is missing."""


_Value = TypeVar("_Value")

# Reason codes.
NOT_ACCESSIBLE, NOT_JSON, NOT_AN_OBJECT, WRONG_FIELD = "NOT_ACCESSIBLE", "NOT_JSON", "NOT_AN_OBJECT", "WRONG_FIELD"

# Messages about a file have one line.
_MOST_CHARACTERS = 500
# The number of files whose warnings are remembered; after more warnings, the oldest files may be warned of again.
_MOST_WARNED = 10_000


@dataclass(frozen=True)
class Unreadable:
    """Why a state file has no value.

    Attributes:
        code: reason code.
        detail: the same for people, in one line.
    """

    code: str
    detail: str

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


@dataclass(frozen=True)
class Missing:
    """There is no state file of this name."""


class FieldError(Exception):
    """A field is missing or its value is not accepted; only ``parse`` sees it."""


class Fields:
    """The fields of a JSON object, by name and type; others may be there and are ignored.

    Args:
        node: the parsed object.
    """

    def __init__(self, node: Mapping[str, Any]) -> None:
        self._node = node

    def whole_or_none(self, name: str, most: int = LAST_MILLIS) -> int | None:
        """A whole number from 0 to ``most``; None when it is missing or anything else."""
        try:
            return self.whole_number(name, most=most)
        except FieldError:
            return None

    def text_or_none(self, name: str) -> str | None:
        """A text of any length, with replacements for what does not print; None when it is missing or no text."""
        value = self._node.get(name)
        return printable(value) if isinstance(value, str) else None

    def whole_number(self, name: str, least: int = 0, most: int = LAST_MILLIS) -> int:
        """A whole number within bounds, both inclusive.

        Raises:
            FieldError: missing, of another type, or out of bounds.
        """
        value = self._node.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise FieldError(f"'{name}' is {_shown(value)}, expected a whole number from {least} to {most}")
        return value

    def text(self, name: str) -> str:
        """A short printable text that is not empty.

        Raises:
            FieldError: missing, of another type, empty, too long, or with characters that do not print.
        """
        value = self._node.get(name)
        if not isinstance(value, str) or not value or len(value) > _MOST_CHARACTERS or not value.isprintable():
            raise FieldError(f"'{name}' is {_shown(value)}, expected a line of 1 to {_MOST_CHARACTERS} characters")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of short printable texts.

        Raises:
            FieldError: missing, of another type, or with an item that is none.
        """
        value = self._node.get(name)
        if not isinstance(value, list):
            raise FieldError(f"'{name}' is {_shown(value)}, expected a list of texts")
        return [Fields({f"{name}[{i}]": item}).text(f"{name}[{i}]") for i, item in enumerate(value)]

    def strings(self, name: str) -> list[str]:
        """A list of texts of any length.

        Raises:
            FieldError: missing, of another type, or with an item that is none, or that has halves of surrogate pairs,
                which cannot be sent to the JVM.
        """
        value = self._node.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise FieldError(f"'{name}' is {_shown(value)}, expected a list of texts")
        if any("\ud800" <= character <= "\udfff" for item in value if not item.isascii() for character in item):
            raise FieldError(f"'{name}' has halves of surrogate pairs")
        return value

    def entries(self, name: str) -> list[Any]:
        """A list of anything.

        Raises:
            FieldError: missing or of another type.
        """
        value = self._node.get(name)
        if not isinstance(value, list):
            raise FieldError(f"'{name}' is {_shown(value)}, expected a list")
        return value

    def times(self, name: str) -> dict[str, int]:
        """Epoch milliseconds by name.

        Raises:
            FieldError: missing, of another type, or with a value that is no time.
        """
        value = self._node.get(name)
        if not isinstance(value, dict):
            raise FieldError(f"'{name}' is {_shown(value)}, expected an object")
        return {key: Fields(value).whole_number(key) for key in value}

    def flag(self, name: str) -> bool:
        """Whether something holds.

        Raises:
            FieldError: missing or of another type.
        """
        value = self._node.get(name)
        if not isinstance(value, bool):
            raise FieldError(f"'{name}' is {_shown(value)}, expected true or false")
        return value

    def share_or_none(self, name: str) -> float | None:
        """A number from 0 to 1; None when it is missing or anything else."""
        value = self._node.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return float(value) if 0 <= value <= 1 else None

    def whole_numbers(self, name: str, least: int = 0, most: int = LAST_MILLIS) -> list[int]:
        """A list of whole numbers within bounds, both inclusive.

        Raises:
            FieldError: missing, of another type, or with an item that is none or out of bounds.
        """
        value = self._node.get(name)
        if not isinstance(value, list):
            raise FieldError(f"'{name}' is {_shown(value)}, expected a list of whole numbers")
        return [
            Fields({f"{name}[{i}]": item}).whole_number(f"{name}[{i}]", least, most) for i, item in enumerate(value)
        ]


def _shown(value: object) -> str:
    if value is None:
        return "missing or null"
    if isinstance(value, str):
        return ascii(value[:40])
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value)[:40]


def parse(text: str, build: Callable[[Fields], _Value]) -> _Value | Unreadable:
    """Parses the text of a state file; total.

    If a key occurs twice, its last value counts, as for Spark's own reader of JSON.

    Args:
        text: the text.
        build: makes the value out of the object's fields; may raise ``FieldError`` and nothing else.
    """
    try:
        # NaN and Infinity, which Python writes, are no JSON.
        node = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        return Unreadable(NOT_JSON, "it is nested too deeply")
    except ValueError as error:
        return Unreadable(NOT_JSON, "it is empty" if not text.strip() else _one_line(str(error)))
    if not isinstance(node, dict):
        return Unreadable(NOT_AN_OBJECT, "it is no JSON object")
    try:
        return build(Fields(node))
    except FieldError as error:
        return Unreadable(WRONG_FIELD, _one_line(str(error)))


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def read(
    table: StateFolder, file: str, parsed: Callable[[str], _Value | Unreadable], advice: str
) -> _Value | Unreadable | Missing:
    """Reads a state file; what cannot be read is logged as a warning once per file, until it can be read again.

    Args:
        table: the table.
        file: path relative to ``_use/``.
        parsed: total function of the file's text.
        advice: the consequences and the remedy, as sentences.
    """
    try:
        text = table.read_state(file)
    except file_errors() as error:
        result: _Value | Unreadable | Missing = Unreadable(NOT_ACCESSIBLE, access_problem(error))
    else:
        result = Missing() if text is None else parsed(text)
    if isinstance(result, Unreadable):
        warn_once(table, file, result, advice)
    else:
        _forget(table, file)
    return result


def access_problem(error: BaseException) -> str:
    """Returns the message of the file system, in one line."""
    if not spark_errors():
        return _one_line(str(error))
    from catalog.jvm.java_errors import text_of

    return _one_line(text_of(error))


def _one_line(text: str) -> str:
    line = first_line(Exception(text))[:_MOST_CHARACTERS]
    return printable(line) or "no reason is given"


def printable(text: str) -> str:
    """The text in one line, without characters that do not print: halves of surrogate pairs cannot even be encoded."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


# ------------------------------------------------------------------------------------------------------- warnings

_lock = threading.Lock()
_warned: dict[str, None] = {}


def warn_once(table: StateFolder, file: str, problem: Unreadable, advice: str) -> None:
    """Logs that a file of a table cannot be read, unless that was logged already.

    Args:
        table: the table.
        file: path relative to ``_use/``.
        problem: why.
        advice: the consequences and the remedy, as sentences.
    """
    path = f"{table.state_folder}/{file}"
    with _lock:
        if path in _warned:
            return
        if len(_warned) >= _MOST_WARNED:
            del _warned[next(iter(_warned))]
        _warned[path] = None
    logger.warning("%s cannot be read (%s). %s", path, problem, advice)


def _forget(table: StateFolder, file: str) -> None:
    with _lock:
        _warned.pop(f"{table.state_folder}/{file}", None)
