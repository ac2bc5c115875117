"""Check of the placement of rows, computed without the expressions that place them.

Blocks are recorded by the same expressions that place the rows, so comparing both would not show a defect in them.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, DateType, FloatType, TimestampNTZType, TimestampType

from catalog.jvm.local_rows import local_data_frame
from otree.cube import CubeId
from otree.transformation.base import Transformation
from otree.transformation.hashing import HashTransformation
from procedures.insight.checking.problem import ERROR, SCHEMA
from procedures.layout.index_columns import IndexColumns

CHECK = "PLACEMENT_DIFFERS"
# The rows come from the first files. A defective expression is wrong for most rows.
_ROWS = 100
_DEEPEST = 8
# Cells with more bits do not fit in a long.
CELL_BITS = 60
_MILLIS_OF_DAY = 86_400_000


def placement_problems(rows: DataFrame, columns: IndexColumns) -> DataFrame:
    """Compares the cubes of some rows with the results of the revision's transformations.

    Args:
        rows: rows of indexed files.
        columns: the indexed columns of the revision.

    Returns:
        One problem or none.
    """
    revision = columns.revision
    depth = min(CELL_BITS // revision.dimensions, _DEEPEST)
    types = [rows.select(F.col(name)).schema[0].dataType for name in columns.columns]
    values = [
        _plain(F.col(name), data_type, transformation).alias(f"v{i}")
        for i, (name, data_type, transformation) in enumerate(
            zip(columns.columns, types, revision.transformations, strict=True)
        )
    ]
    sampled = rows.limit(_ROWS).select(*values, columns.cell(depth).alias("cell")).collect()
    wrong = 0
    for *plain, cell in sampled:
        point = revision.coordinates([_value(v, data_type) for v, data_type in zip(plain, types, strict=True)])
        wrong += CubeId.of_point(point, depth).cell != cell
    message = f"{wrong} of {len(sampled)} rows are not where the transformations of the revision place them"
    problems = [(CHECK, ERROR, None, revision.revision_id, None, message)] if wrong else []
    return local_data_frame(rows.sparkSession, problems, SCHEMA)


def _plain(column: Column, data_type: DataType, transformation: Transformation) -> Column:
    """Returns the value as a number, string, bytes or decimal; times are converted by Spark's functions."""
    if isinstance(data_type, FloatType) and isinstance(transformation, HashTransformation):
        # As a DOUBLE it has other digits.
        return column.cast("string")
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
    """Converts a value to the unit of the transformation."""
    if value is None:
        return None
    if isinstance(data_type, DateType):
        return value * _MILLIS_OF_DAY
    if isinstance(data_type, (TimestampType, TimestampNTZType)):
        return value // 1000
    return bytes(value) if isinstance(value, bytearray) else value
