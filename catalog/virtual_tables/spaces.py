"""How revisions and cubes are shown to people: column names, transformations, and values in place of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from pyspark.sql.types import StructType

from catalog.columns.column_names import find_stored, written_name
from otree.cube import CubeId
from otree.revision import Revision
from otree.transformation import Transformation

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def column_names(schema: StructType, physical: Sequence[str]) -> list[str]:
    """Current names of columns stored under these names, as properties take them; of dropped ones the stored names."""
    names = []
    for stored in physical:
        column = find_stored(schema, stored)
        names.append(stored if column is None else written_name(schema, column))
    return names


def descriptions(revision: Revision) -> list[str]:
    """Each column's transformation in words, such as ``linear 0 to 99``; the kind alone before the first data."""
    if not revision.transformations:
        return [transformer.kind for transformer in revision.transformers]
    pairs = zip(revision.transformers, revision.transformations, strict=True)
    return [_description(transformer.kind, transformation) for transformer, transformation in pairs]


def _description(kind: str, transformation: Transformation) -> str:
    return transformation.describe(kind, lambda value: _text(value, transformation))


def value_at(transformation: Transformation, coordinate: float) -> str | None:
    """The value that lies at a coordinate, as text; None where coordinates do not lead back to values.

    Args:
        transformation: of the column.
        coordinate: in [0, 1].

    Returns:
        A number, a date, a timestamp in UTC, or a string. Between two whole values or strings, the upper one.
    """
    value = transformation.value_at(coordinate)
    return value if value is None or isinstance(value, str) else _text(value, transformation)


def _text(value: int | float, transformation: Transformation) -> str:
    data_type = getattr(transformation, "data_type", "")
    if data_type not in ("DateDataType", "TimestampDataType"):
        return str(value)
    try:
        moment = _EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        return f"{value} ms"
    if data_type == "DateDataType":
        return moment.date().isoformat()
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"


def box(revision: Revision, cube: CubeId, columns: Sequence[str]) -> list[tuple[str, str | None, str | None]] | None:
    """The part of the space that a cube covers.

    Args:
        revision: the cube's revision.
        cube: a cube of its dimensions.
        columns: names to show, in the revision's order.

    Returns:
        Per column its name, the first value, and the value that the next cube starts with; None for a revision
        without data.
    """
    if not revision.transformations:
        return None
    return [
        (name, value_at(transformation, start), value_at(transformation, end))
        for name, transformation, (start, end) in zip(columns, revision.transformations, cube.box(), strict=True)
    ]
