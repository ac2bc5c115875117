"""What queries may skip: a sample as a weight range, filters as a box of coordinates per revision."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from catalog.properties import HASH_TYPES_KEY_PREFIX, hash_type
from otree.revision import Revision, last_revision_id, revisions_from_configuration
from otree.transformer import format_data_type
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange

_MILLIS_PER_DAY = 86_400_000
# Dates of tables by other writers may be stored as local midnight of any zone: widen by the largest offset and a bit.
_DATE_SLACK = _MILLIS_PER_DAY + 1


@dataclass(frozen=True)
class _Index:
    revisions: Mapping[int, Revision]
    newest: int | None
    hash_types: Mapping[int, str]


@lru_cache(maxsize=64)
def _index(configuration: str) -> _Index:
    properties: Mapping[str, str] = json.loads(configuration)
    revisions = revisions_from_configuration(properties)
    types = {number: properties.get(f"{HASH_TYPES_KEY_PREFIX}{number}") for number in revisions}
    known = {number: text for number, text in types.items() if text is not None}
    return _Index(revisions, last_revision_id(properties), known)


def plan_sample(configuration: str, lower: float, upper: float) -> str | None:
    """Says which rows a sample of fractions [lower, upper) takes.

    Args:
        configuration: the table's properties, as JSON.
        lower: fraction, inclusive.
        upper: fraction, exclusive.

    Returns:
        JSON with the hashed columns (physical names) and the first and last weight, null where unbounded; None when
        the table has no index yet and Spark must sample by itself.
    """
    index = _index(configuration)
    revision = index.revisions.get(index.newest) if index.newest else None
    if revision is None or not revision.transformations:
        return None
    weights = WeightRange.of_sample(lower, upper)
    if weights is None:
        weights = WeightRange(MAX_WEIGHT, MIN_WEIGHT)  # no row
    return json.dumps(
        {
            "columns": list(revision.columns),
            "first": None if weights.first == MIN_WEIGHT else weights.first,
            "last": None if weights.last == MAX_WEIGHT else weights.last,
        }
    )


def plan_read(configuration: str, conditions: str) -> str | None:
    """Says what the blocks of each revision must meet for a scan with these conditions.

    Args:
        configuration: the table's properties, as JSON.
        conditions: JSON array of comparisons that all must hold: ``operator``, ``values``, and either ``column`` (with
            its ``type``) or ``hash_of`` (columns of a weight).

    Returns:
        JSON ``{"revisions": {id: {first_weight, last_weight, lower, upper}}}``, or None when nothing can be skipped.
    """
    index = _index(configuration)
    comparisons: list[dict[str, Any]] = json.loads(conditions)
    queries = {}
    for revision in index.revisions.values():
        if revision.is_staging or not revision.transformations:
            continue
        weights = _weights(revision, index.hash_types.get(revision.revision_id), comparisons)
        box = [_interval(revision, dimension, comparisons) for dimension in range(revision.dimensions)]
        if weights == (MIN_WEIGHT, MAX_WEIGHT) and all(side == (0.0, 1.0) for side in box):
            continue
        queries[str(revision.revision_id)] = {
            "first_weight": weights[0],
            "last_weight": weights[1],
            "lower": [side[0] for side in box],
            "upper": [side[1] for side in box],
        }
    return json.dumps({"revisions": queries}) if queries else None


def _weights(revision: Revision, written_as: str | None, comparisons: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Weights that the conditions on exactly this revision's hash leave."""
    first, last = MIN_WEIGHT, MAX_WEIGHT
    for comparison in comparisons:
        if comparison.get("hash_of") != list(revision.columns):
            continue
        if not _same_hash(revision, written_as, comparison["types"]):
            continue
        value = int(comparison["values"][0])
        match comparison["operator"]:
            case ">=":
                first = max(first, value)
            case ">":
                first = max(first, value + 1)
            case "<=":
                last = min(last, value)
            case "<":
                last = min(last, value - 1)
            case "=":
                first, last = max(first, value), min(last, value)
    return first, last


def _same_hash(revision: Revision, written_as: str | None, types: Sequence[str]) -> bool:
    """Whether today's column types hash as they did when the revision was written (a widened type does not).

    Args:
        revision: the revision.
        written_as: hash types remembered with it; None for a revision of another writer.
        types: today's SQL types.
    """
    if written_as is not None:
        return written_as == ";".join(hash_type(sql_type) for sql_type in types)
    # Another writer leaves only the format's names, which do not tell decimals of different size apart.
    return all(
        transformer.data_type != "DecimalDataType" and format_data_type(sql_type) == transformer.data_type
        for sql_type, transformer in zip(types, revision.transformers, strict=True)
    )


def _interval(revision: Revision, dimension: int, comparisons: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Coordinates in one dimension that the conditions on its column leave; [0, 1] when they say nothing."""
    transformer = revision.transformers[dimension]
    transformation = revision.transformations[dimension]
    low, high = 0.0, 1.0
    for comparison in comparisons:
        if comparison.get("column") != transformer.column:
            continue
        values = [_index_value(v, comparison["type"], transformer.data_type) for v in comparison["values"]]
        if any(v is None for v in values):
            continue
        slack = _DATE_SLACK if comparison["type"] == "date" else 0
        if len(values) > 1 and any(v != v for v in values):  # NaN has no order
            continue
        smallest, largest = _bounds(values, slack)
        match comparison["operator"]:
            case "=" | "in":
                side = transformation.interval(smallest, largest)
            case "<" | "<=":
                side = transformation.interval(None, largest)
            case ">" | ">=":
                side = transformation.interval(smallest, None)
            case _:
                side = (0.0, 1.0)
        low, high = max(low, side[0]), min(high, side[1])
    return low, high


def _bounds(values: Sequence[Any], slack: int) -> tuple[Any, Any]:
    if slack:
        return min(values) - slack, max(values) + slack
    return min(values), max(values)


def _index_value(value: Any, sql_type: str, data_type: str) -> Any:
    """A literal in the unit of the revision: numbers as they are, times in epoch milliseconds; None = not known."""
    if sql_type in ("tinyint", "smallint", "int", "bigint"):
        return value if data_type in ("IntegerDataType", "LongDataType") else None
    if sql_type in ("float", "double"):
        number = float(value.replace("Infinity", "inf")) if isinstance(value, str) else float(value)
        return number if data_type in ("FloatDataType", "DoubleDataType") else None
    if sql_type.startswith("decimal"):
        return Decimal(value) if data_type == "DecimalDataType" else None
    if sql_type == "date":
        return value * _MILLIS_PER_DAY if data_type == "DateDataType" else None
    if sql_type == "timestamp":
        return value // 1000 if data_type == "TimestampDataType" else None
    if sql_type == "string":
        return value if data_type == "StringDataType" else None
    return None
