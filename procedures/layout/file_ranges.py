"""Ranges of the indexed columns as Delta's file statistics tell them: no job is needed where they do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, timezone

from otree.transformation import ColumnStats
from otree.transformer import Transformer

_UNIX_EPOCH = date(1970, 1, 1)
_MILLIS_PER_DAY = 86_400_000


def ranges_of_files(statistics: Sequence[str | None], transformers: Sequence[Transformer]) -> list[ColumnStats] | None:
    """The range of each column over some files.

    Args:
        statistics: Delta's statistics of each file, as JSON.
        transformers: what is indexed.

    Returns:
        One range per transformer, or None where the statistics do not tell: a column without them, a value that is not
        finite, a kind of column that other facts are needed for.
    """
    files = [json.loads(text) for text in statistics if text]
    if len(files) != len(statistics):
        return None
    ranges = []
    for transformer in transformers:
        needed = transformer.data_facts
        if needed.quantiles:
            return None
        if not needed.span:
            ranges.append(ColumnStats(None, None))
            continue
        values: list[int | float] = []
        for file in files:
            if file.get("nullCount", {}).get(transformer.column) == file["numRecords"]:
                continue
            for bound in ("minValues", "maxValues"):
                value = _in_index_unit(file.get(bound, {}).get(transformer.column), transformer.data_type)
                if value is None:
                    return None
                values.append(value)
        ranges.append(ColumnStats(min(values), max(values)) if values else ColumnStats(None, None))
    return ranges


def _in_index_unit(value: object, data_type: str) -> int | float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if data_type in ("DoubleDataType", "FloatDataType", "DecimalDataType") else value
    if not isinstance(value, str):
        return None
    try:
        if data_type == "DateDataType":
            return (date.fromisoformat(value) - _UNIX_EPOCH).days * _MILLIS_PER_DAY
        if data_type == "TimestampDataType":
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
            if moment.tzinfo is None:
                return None
            since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
            return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    except ValueError:
        return None
    return None
