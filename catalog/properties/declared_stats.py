"""``use.index.columnStats``: what the owner of a table says about the values of its columns."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from catalog.columns.column_names import FoundColumn, find_column, written_name
from catalog.errors import InvalidArgumentError, TooComplexError, UnknownNameError, UseError
from otree.transformation import DeclaredStats

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

COLUMN_STATS_KEY = "use.index.columnStats"

# First words of the types' names.
_STRING, _DATE = "string", "date"
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})
_INTEGRAL = frozenset({"tinyint", "smallint", "int", "bigint"})
_FRACTIONAL = frozenset({"float", "double", "decimal"})
_ENDINGS = ("_min", "_max", "_quantiles")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_LARGEST = sys.float_info.max


def declared_stats(text: str | None, schema: StructType) -> dict[str, DeclaredStats]:
    """Reads the property.

    Args:
        text: JSON such as ``{"a_min": 0, "a_max": 9, "c_quantiles": ["d", "m", "z"]}``; None or blank for nothing.
            Dates and timestamps are ISO texts (UTC where they name no zone) or epoch milliseconds.
        schema: the table's schema, logical names.

    Returns:
        What is declared, by stored name of the column.

    Raises:
        InvalidArgumentError: not a JSON object, or a key or value that is not accepted; the text names the key.
        UnknownNameError: a key names a column that the schema does not have.
        TooComplexError: JSON that is nested too deeply to be read.
    """
    entries: dict[str, dict[str, Any]] = {}
    columns: dict[str, FoundColumn] = {}
    for key, value in _entries(text).items():
        name, ending = _checked_key(key, value)
        column = find_column(schema, name)
        if column is None:
            raise UnknownNameError.of("column", name, schema.names)
        columns[column.stored] = column
        entries.setdefault(column.stored, {})[ending] = _read(key, value, ending, column.data_type)
    return {stored: _checked(columns[stored].plain_name, of_column) for stored, of_column in entries.items()}


def check_text(text: str | None) -> None:
    """Checks what is independent of a table's columns: the JSON and the endings of its keys.

    Args:
        text: as for ``declared_stats``.

    Raises:
        InvalidArgumentError: not a JSON object, or a key that is not accepted.
        TooComplexError: JSON that is nested too deeply to be read.
    """
    for key, value in _entries(text).items():
        _checked_key(key, value)


def _checked_key(key: str, value: object) -> tuple[str, str]:
    """Returns the column and the ending of a key."""
    name, ending = _name_and_ending(key)
    if not ending:
        raise _refused(key, value, "a key is a column's name with _min, _max or _quantiles")
    return name, ending


def with_quantiles(
    text: str | None, schema: StructType, column: FoundColumn, quantiles: Sequence[float] | Sequence[str]
) -> str:
    """The property's text with other quantiles of one column; everything else stays as it is.

    Args:
        text: the text so far, None or blank for nothing.
        schema: the table's schema, logical names.
        column: the column.
        quantiles: in the index's unit, ascending.

    Raises:
        InvalidArgumentError: the text so far is not a JSON object of values and arrays of values.
        TooComplexError: the text so far is JSON that is nested too deeply to be read.
    """
    entries = dict(_entries(text))
    # The same column in another spelling would be a second declaration.
    for key in list(entries):
        name, ending = _name_and_ending(key)
        declared = find_column(schema, name) if ending == "_quantiles" else None
        if declared is not None and declared.path == column.path:
            del entries[key]
    entries[f"{written_name(schema, column)}_quantiles"] = [written(q, column.data_type) for q in quantiles]
    return json.dumps(entries, ensure_ascii=False)


def with_moved_columns(text: str, moved: Callable[[str], str | None]) -> str | None:
    """The property's text after columns were renamed or dropped.

    Args:
        text: the property's text.
        moved: the new name of the column that a name stands for; None when the column was dropped.

    Returns:
        The text, the same when nothing changes or when it cannot be read; None when nothing is left of it.
    """
    try:
        entries = _entries(text)
    except UseError:
        return text
    kept: dict[str, Any] = {}
    for key, value in entries.items():
        name, ending = _name_and_ending(key)
        to = moved(name) if ending else name
        if to is not None:
            kept[to + ending] = value
    if kept == entries:
        return text
    return json.dumps(kept, ensure_ascii=False) if kept else None


def _name_and_ending(key: str) -> tuple[str, str]:
    """The column's name and the ending of a key; the key and '' when it ends in no accepted way."""
    ending = next((e for e in _ENDINGS if key.endswith(e) and len(key) > len(e)), "")
    return key.removesuffix(ending), ending


def written(value: float | str, data_type: DataType) -> int | float | str:
    """A value of the index as the property has it: times as ISO text in UTC, whole numbers without a fraction."""
    if isinstance(value, str) or not math.isfinite(value):
        return value
    if _kind(data_type) == _DATE:
        return (_EPOCH + timedelta(milliseconds=value)).date().isoformat()
    if _kind(data_type) in _TIMESTAMPS:
        try:
            moment = _EPOCH + timedelta(milliseconds=value)
        except OverflowError:  # beyond the years that an ISO text has
            return int(value)
        return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    return int(value) if _kind(data_type) in _INTEGRAL else value


def _kind(data_type: DataType) -> str:
    """The first word of a type's name, such as ``decimal`` of ``decimal(10,2)``."""
    return re.split(r"\W", data_type.simpleString(), maxsplit=1)[0]


def _entries(text: str | None) -> Mapping[str, Any]:
    if text is None or not text.strip():
        return {}
    try:
        node = json.loads(text)
    except ValueError as error:
        raise InvalidArgumentError.of(COLUMN_STATS_KEY, text, f"JSON text ({error})") from error
    except RecursionError as error:
        raise _nested() from error
    if not isinstance(node, dict):
        raise InvalidArgumentError.of(COLUMN_STATS_KEY, text, 'a JSON object such as {"a_min": 0, "a_max": 9}')
    for key, value in node.items():
        within = value if isinstance(value, list) else [value] if isinstance(value, dict) else ()
        if any(isinstance(item, (list, dict)) for item in within):
            raise _nested(key)
    return node


def _nested(key: str = "") -> TooComplexError:
    name = f"{COLUMN_STATS_KEY}: {key}" if key else COLUMN_STATS_KEY
    return TooComplexError.of(name, "at most two levels, an object of values and arrays of values")


def _refused(key: str, value: object, accepted: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"{COLUMN_STATS_KEY}: {key}", value, accepted)


def _read(key: str, value: Any, ending: str, data_type: DataType) -> Any:
    if ending != "_quantiles":
        if _kind(data_type) == _STRING:
            raise _refused(key, value, "a string column has quantiles only")
        return _value(key, value, data_type)
    if not isinstance(value, list) or len(value) < 2:
        raise _refused(key, value, "a JSON array of at least two values")
    quantiles = tuple(_value(key, item, data_type) for item in value)
    # Floats, so that what is declared compares to what a revision holds.
    numbers = quantiles if _kind(data_type) == _STRING else tuple(float(q) for q in quantiles)
    if list(numbers) != sorted(numbers) or numbers[0] == numbers[-1]:
        raise _refused(key, value, "values in ascending order, not all the same")
    return numbers


def _value(key: str, value: Any, data_type: DataType) -> Any:
    """A JSON value in the index's unit."""
    if _kind(data_type) == _STRING:
        if not isinstance(value, str):
            raise _refused(key, value, "a string is expected")
        return value
    is_time = _kind(data_type) in {_DATE, *_TIMESTAMPS}
    if is_time and isinstance(value, str):
        return _milliseconds(key, value, data_type)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST <= value <= _LARGEST:
        expected = "an ISO date or timestamp, or epoch milliseconds," if is_time else "a finite number"
        raise _refused(key, value, f"{expected} is expected")
    if _kind(data_type) in _FRACTIONAL:
        return float(value)
    if not is_time and _kind(data_type) not in _INTEGRAL:
        raise _refused(key, value, f"a column of type {data_type.simpleString()} has no statistics to declare")
    if value != math.floor(value):
        raise _refused(key, value, "a whole number is expected")
    return int(value)


def _milliseconds(key: str, text: str, data_type: DataType) -> int:
    try:
        if _kind(data_type) == _DATE:
            day = date.fromisoformat(text.strip())
            moment = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
        else:
            # Python 3.10 does not know the letter for UTC.
            moment = datetime.fromisoformat(text.strip().removesuffix("Z") + ("+00:00" if text.endswith("Z") else ""))
            moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    except ValueError as error:
        example = "2026-11-21" if _kind(data_type) == _DATE else "2026-11-21 13:46:00"
        raise _refused(key, text, f"an ISO text such as '{example}' is expected") from error
    return (moment - _EPOCH) // _MILLISECOND


def _checked(name: str, said: Mapping[str, Any]) -> DeclaredStats:
    low, high = said.get("_min"), said.get("_max")
    if (low is None) != (high is None):
        present, missing = ("_min", "_max") if high is None else ("_max", "_min")
        raise _refused(f"{name}{present}", said[present], f"{name}{missing} must be given with it")
    if low is not None and high is not None and not low < high:
        raise _refused(f"{name}_min", low, f"it must be less than {name}_max = {high}")
    return DeclaredStats(low, high, said.get("_quantiles"))
