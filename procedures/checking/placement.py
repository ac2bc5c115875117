"""Whether rows are placed where the transformations say, computed without the expressions that place them.

Blocks are noted by the same expressions that place the rows, so that comparing both would show no mistake in them.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, DateType, FloatType, TimestampNTZType, TimestampType

from otree.cube import CubeId
from procedures.checking.problem import ERROR, SCHEMA
from procedures.layout.index_columns import IndexColumns

CHECK = "PLACEMENT_DIFFERS"
# They come from the first files that are read; a wrong expression is wrong for most rows.
_ROWS = 100
_DEEPEST = 8
# Cells of more bits do not fit a long.
CELL_BITS = 60
_MILLIS_OF_DAY = 86_400_000


def placement_problems(rows: DataFrame, columns: IndexColumns) -> DataFrame:
    """Compares the cubes of some rows with those that the revision's transformations give.

    Args:
        rows: rows of indexed files.
        columns: their place in the revision.

    Returns:
        One problem, or none.
    """
    revision = columns.revision
    depth = min(CELL_BITS // revision.dimensions, _DEEPEST)
    types = [rows.select(F.col(name)).schema[0].dataType for name in columns.columns]
    values = [
        _plain(F.col(name), data_type).alias(f"v{i}")
        for i, (name, data_type) in enumerate(zip(columns.columns, types, strict=True))
    ]
    found = rows.limit(_ROWS).select(*values, columns.cell(depth).alias("cell")).collect()
    wrong = 0
    for *plain, cell in found:
        point = revision.coordinates([_value(v, data_type) for v, data_type in zip(plain, types, strict=True)])
        wrong += CubeId.of_point(point, depth).cell != cell
    message = f"{wrong} of {len(found)} rows are placed elsewhere than the transformations of the revision say"
    problems = [(CHECK, ERROR, None, revision.revision_id, None, message)] if wrong else []
    return rows.sparkSession.createDataFrame(problems, SCHEMA)


def _plain(column: Column, data_type: DataType) -> Column:
    """The value as a number, text, bytes or decimal; times by functions of Spark's own."""
    if isinstance(data_type, BooleanType):
        return column.cast("int")
    if isinstance(data_type, FloatType):
        return column.cast("double")
    if isinstance(data_type, DateType):
        return F.unix_date(column)
    if isinstance(data_type, TimestampType):
        return F.unix_micros(column)
    if isinstance(data_type, TimestampNTZType):
        return F.timestamp_diff("MICROSECOND", F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"), column)
    return column


def _value(value: Any, data_type: DataType) -> Any:
    """The value in the transformation's unit."""
    if value is None:
        return None
    if isinstance(data_type, DateType):
        return value * _MILLIS_OF_DAY
    if isinstance(data_type, (TimestampType, TimestampNTZType)):
        return value // 1000
    return bytes(value) if isinstance(value, bytearray) else value
