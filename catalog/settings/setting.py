"""Settings that people write as text: table properties, Spark confs, options. Each is declared once, as a ``Setting``.

A ``ValueType`` is the only parser of its kind of text, whoever the text comes from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from catalog.errors import InvalidArgumentError

T_co = TypeVar("T_co", covariant=True)

_SIZE_UNITS = {"": 1, "b": 1} | {
    unit: 1 << 10 * power for power, letter in enumerate("kmgt", 1) for unit in (letter, f"{letter}b")
}
_MOST_BYTES = 2**63 - 1
_TIME_UNITS = {
    "ms": (1, ("ms", "msec", "millisecond", "milliseconds")),
    "s": (1_000, ("s", "sec", "secs", "second", "seconds")),
    "m": (60_000, ("m", "min", "mins", "minute", "minutes")),
    "h": (3_600_000, ("h", "hr", "hour", "hours")),
    "d": (86_400_000, ("d", "day", "days")),
    "w": (604_800_000, ("w", "week", "weeks")),
}
_TIME_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


@dataclass(frozen=True)
class ValueType(Generic[T_co]):
    """A type of values that are written as text.

    Attributes:
        name: for the reference, such as ``whole number``.
        accepted: what is accepted, as the end of an error.
        read: the value of a text; raises ``ValueError`` when the text is not accepted.
        sql_type: the SQL type of the value where it is an option of a strategy.
    """

    name: str
    accepted: str
    read: Callable[[str], T_co]
    sql_type: str = "STRING"

    def parse(self, name: str, text: str) -> T_co:
        """Parses a text.

        Args:
            name: what the text was given for, as errors show it.
            text: as written.

        Raises:
            InvalidArgumentError: the text is not accepted.
        """
        try:
            return self.read(text)
        except ValueError as error:
            raise InvalidArgumentError.of(name, text, self.accepted) from error


@dataclass(frozen=True)
class Setting(Generic[T_co]):
    """A table property, a Spark conf or an option.

    Attributes:
        name: the key.
        type: its type.
        doc: what it does, in a sentence.
        default: what applies when it is not set, as text; None = nothing is set.
        unset: what it means that nothing is set, in a few words; for people.
        check: refuses texts that have the type and still make no sense; gets the name and the text.
        aliases: further keys that are accepted; the name wins where both are set.
    """

    name: str
    type: ValueType[T_co]
    doc: str
    default: str | None = None
    unset: str = "none"
    check: Callable[[str, str], object] | None = None
    aliases: tuple[str, ...] = ()

    def parse(self, text: str) -> T_co:
        """Parses a text.

        Raises:
            UseError: the text is not accepted.
        """
        value = self.type.parse(self.name, text)
        if self.check is not None:
            self.check(self.name, text)
        return value

    def named(self, name: str) -> Setting[T_co]:
        """The same setting under another name, as write options have names of their own."""
        return replace(self, name=name, aliases=())

    def check_value(self, value: object) -> None:
        """Refuses a value that is no text, out of the range of the type.

        Args:
            value: the value; None is accepted, and means that nothing is set.

        Raises:
            InvalidArgumentError: the value is not accepted.
        """
        if value is None:
            return
        try:
            self.type.read(str(value))
        except ValueError as error:
            raise InvalidArgumentError.of(self.name, value, self.type.accepted) from error

    def key_in(self, values: Mapping[str, str]) -> str | None:
        """The name or the alias under which a value is set among others; None if none is set."""
        return next((key for key in (self.name, *self.aliases) if key in values), None)

    def optional_value(self, values: Mapping[str, str]) -> T_co | None:
        """The value that is set among others, or None.

        Raises:
            UseError: the value is not accepted; the error names the key that was written.
        """
        key = self.key_in(values)
        return None if key is None else self.named(key).parse(values[key])

    def value(self, values: Mapping[str, str]) -> T_co:
        """The value that is set among others, or the default, which this setting must have.

        Raises:
            UseError: the value is not accepted.
        """
        value = self.optional_value(values)
        if value is not None:
            return value
        if self.default is None:
            raise LookupError(f"{self.name} is not set and has no default")
        return self.parse(self.default)

    def of_conf(self, conf: Callable[[str, str], str | None]) -> T_co:
        """The value in a configuration of Spark; an empty one means the default, which this setting must have.

        Args:
            conf: gives the value of a setting, or the default that it is handed.

        Raises:
            UseError: the value is not accepted.
        """
        if self.default is None:
            raise LookupError(f"{self.name} has no default")
        return self.parse((conf(self.name, self.default) or self.default).strip())

    def optional_of_conf(self, conf: Callable[[str, str], str | None]) -> T_co | None:
        """The value in a configuration of Spark; None if there is none, or an empty one.

        Args:
            conf: gives the value of a setting, or the default that it is handed.

        Raises:
            UseError: the value is not accepted.
        """
        text = (conf(self.name, "") or "").strip()
        return self.parse(text) if text else None

    def of_conf_or_default(self, conf: Callable[[str, str], str | None]) -> T_co:
        """The same, with the default in place of a value that is not accepted: for what is read while a query runs.

        Args:
            conf: gives the value of a setting, or the default that it is handed.
        """
        try:
            return self.of_conf(conf)
        except InvalidArgumentError:
            return self.of_conf(lambda _, default: default)


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(text)
    return word == "true"


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share <= 1:
        raise ValueError(text)
    return share


def _ratio(text: str) -> float:
    ratio = float(text)
    if not 0 <= ratio <= 1:
        raise ValueError(text)
    return ratio


def _above_zero(text: str) -> float:
    number = _finite(text)
    if number <= 0:
        raise ValueError(text)
    return number


def _at_least(least: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        number = _finite(text)
        if number < least:
            raise ValueError(text)
        return number

    return read


def _size(text: str) -> int:
    match = re.fullmatch(r"\s*(\d{1,18})\s*([a-zA-Z]*)\s*", text, re.ASCII)
    if match is None or match[2].lower() not in _SIZE_UNITS or int(match[1]) == 0:
        raise ValueError(text)
    size = int(match[1]) * _SIZE_UNITS[match[2].lower()]
    if size > _MOST_BYTES:
        raise ValueError(text)
    return size


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError(text)
    return names


TEXT: ValueType[str] = ValueType("text", "a text", str)
BOOLEAN = ValueType("boolean", "true or false", _boolean, "BOOLEAN")
NUMBER = ValueType("number", "a number", _finite, "DOUBLE")
SHARE = ValueType("share", "a number above 0 and at most 1", _share, "DOUBLE")
RATIO = ValueType("share", "a number from 0 to 1", _ratio, "DOUBLE")
ABOVE_ZERO = ValueType("number", "a finite number above 0", _above_zero, "DOUBLE")
AT_LEAST_ZERO = ValueType("number", "a number of at least 0", _at_least(0), "DOUBLE")
AT_LEAST_ONE = ValueType("number", "a number of at least 1", _at_least(1), "DOUBLE")
SIZE = ValueType("bytes", "a positive number of bytes below 2^63, such as 134217728 or 128MB", _size, "BIGINT")


def names_of(accepted: str) -> ValueType[tuple[str, ...]]:
    """Names separated by commas, none of them empty.

    Args:
        accepted: what is accepted, as the end of an error.
    """
    return ValueType("list", accepted, _names)


def whole_number(
    least: int, digits: int = 18, accepted: str = "", sql_type: str = "BIGINT", most: int | None = None
) -> ValueType[int]:
    """A whole number of ASCII digits.

    Args:
        least: smallest number accepted, 0 or more.
        digits: digits at most.
        accepted: what is accepted, as the end of an error; made of the limits when left out.
        sql_type: the SQL type of an option of this type.
        most: greatest number accepted; None = as many digits as are accepted.
    """
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        stripped = text.strip()
        if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= digits and int(stripped) >= least):
            raise ValueError(text)
        if most is not None and int(stripped) > most:
            raise ValueError(text)
        return int(stripped)

    return ValueType("whole number", accepted or f"a whole number {limits}", read, sql_type)


def choice(values: Collection[str], accepted: str, *, any_case: bool = False) -> ValueType[str]:
    """One of some words.

    Args:
        values: the words; in lower case with ``any_case``.
        accepted: what is accepted, as the end of an error.
        any_case: whether upper case and spaces around a word are accepted too.
    """

    def read(text: str) -> str:
        word = text.strip().lower() if any_case else text
        if word not in values:
            raise ValueError(text)
        return word

    return ValueType("word", accepted, read)


def duration(
    accepted: str, *, units: Collection[str] = tuple(_TIME_UNITS), spark_syntax: bool = True, least: float = 1
) -> ValueType[float]:
    """A duration, such as ``10 minutes`` or ``90s``, in milliseconds.

    Args:
        accepted: what is accepted, as the end of an error.
        units: keys of ``_TIME_UNITS`` that are accepted, each in all its spellings.
        spark_syntax: whether several parts (``1 hour 30 minutes``), ``interval`` in front, and bare milliseconds are
            accepted too, as Spark does.
        least: milliseconds; with 0, a bare 0 is accepted too.
    """
    millis = {
        spelling: size for unit, (size, spellings) in _TIME_UNITS.items() if unit in units for spelling in spellings
    }

    def read(text: str) -> float:
        lower = text.strip().lower()
        rest = lower.removeprefix("interval ") if spark_syntax else lower
        parts = list(_time_parts(rest))
        if not parts or (len(parts) > 1 and not spark_syntax):
            raise ValueError(text)
        total = 0.0
        for number, unit in parts:
            is_bare = unit == "" and len(parts) == 1 and (spark_syntax or (not least and not float(number)))
            if unit not in millis and not is_bare:
                raise ValueError(text)
            total += float(number) * millis.get(unit, 1)
        if not least <= total < math.inf:
            raise ValueError(text)
        return total

    return ValueType("time", accepted, read)


def _time_parts(text: str) -> Iterator[tuple[str, str]]:
    """Yields the numbers and units of a duration. One pattern for all parts would take exponential time to refuse."""
    position = 0
    while position < len(text):
        match = _TIME_PART.match(text, position)
        if match is None:
            raise ValueError(text)
        yield match[1], match[2]
        position = match.end()


def _fractions(text: str) -> tuple[float, ...]:
    found = tuple(float(entry) for entry in text.split(",")) if text.strip() else ()
    if len(found) > _MOST_FRACTIONS or not all(_LEAST_FRACTION <= fraction < 1.0 for fraction in found):
        raise ValueError(text)
    return tuple(sorted(set(found)))


_MOST_FRACTIONS, _LEAST_FRACTION = 8, 0.0001
FRACTIONS = ValueType(
    "list of fractions",
    f"at most {_MOST_FRACTIONS} numbers from {_LEAST_FRACTION:g} to below 1, separated by commas, such as '0.15,0.01'",
    _fractions,
)

# Options of users' own strategies are declared with SQL types; whole numbers among them count something.
OF_SQL_TYPE: Mapping[str, ValueType[object]] = {
    "BIGINT": whole_number(1),
    "INT": whole_number(1),
    "DOUBLE": NUMBER,
    "BOOLEAN": BOOLEAN,
}
