"""The limit of the history that a purge leaves: an interval, a time or a version, as callers write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import TypeAlias

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError
from catalog.settings.setting import duration
from procedures.selection.timestamps import WrittenTime, instant

NAME = "older_than"
ACCEPTED = (
    "a day-time interval above 0 such as INTERVAL '3' DAY or '3 days' (months and years have no fixed length), a time "
    "in the past such as TIMESTAMP '2026-01-31 00:00:00', or the number of a version"
)

_DURATION = duration(ACCEPTED)
_NUMBER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d.*", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class Age:
    """History of this age or less stays; milliseconds."""

    millis: int


@dataclass(frozen=True)
class Moment:
    """The version of this time and later ones stay; a text that is read in the session's time zone, or milliseconds."""

    time: str | int


@dataclass(frozen=True)
class Version:
    """This version and later ones stay."""

    version: int


OlderThan: TypeAlias = Age | Moment | Version


def parse_older_than(value: object) -> OlderThan:
    """Reads a limit; needs no session.

    Args:
        value: text, whole number, ``timedelta``, ``datetime`` or ``date``.

    Raises:
        InvalidArgumentError: it is none of what is accepted.
    """
    if isinstance(value, timedelta):
        return Age(_positive(round(value.total_seconds() * 1000), value))
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return Moment(str(value))
        return Moment(round(value.astimezone(timezone.utc).timestamp() * 1000))
    if isinstance(value, date):
        return Moment(value.isoformat())
    if isinstance(value, int) and not isinstance(value, bool):
        return Version(_positive(value, value, least=0))
    if not isinstance(value, str):
        raise InvalidArgumentError.of(NAME, value, ACCEPTED)
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return Version(_positive(int(text), value, least=0))
    if _DAY.fullmatch(text):
        try:
            WrittenTime.of(NAME, text)
        except InvalidArgumentError as error:
            raise InvalidArgumentError.of(NAME, value, ACCEPTED) from error
        return Moment(text)
    # As SQL writes intervals: INTERVAL '3' DAY, or what casting one to a text gives.
    if re.search("[a-zA-Z]", text) is None:
        # A duration without a unit would be milliseconds.
        raise InvalidArgumentError.of(NAME, value, ACCEPTED)
    plain = re.sub(r"^interval\s+", "", text.replace("'", " ").strip(), flags=re.IGNORECASE)
    return Age(round(_DURATION.parse(NAME, plain)))


def _positive(number: int, value: object, least: int = 1) -> int:
    if number < least:
        raise InvalidArgumentError.of(NAME, str(value), ACCEPTED)
    return number


def millis_of(spark: SparkSession, moment: Moment) -> int:
    """Returns epoch milliseconds.

    Raises:
        InvalidArgumentError: the text names an unknown time zone.
    """
    return moment.time if isinstance(moment.time, int) else instant(spark, NAME, moment.time).millis
