"""The ranges of the indexed columns in each file, as numbers, from the statistics in the log."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from catalog.columns.column_names import FoundColumn, find_stored
from otree.revision import Revision

# Bytes of a text that become a number, by which texts are ordered.
TEXT_BYTES = 6


def bounds(schema: StructType, revision: Revision | None) -> tuple[Column, Column]:
    """Columns over the rows of ``TableSnapshot.log_files``: the minima and maxima of the indexed columns.

    Args:
        schema: logical schema of the table.
        revision: its columns are meant; none without a revision.

    Returns:
        Two columns ARRAY<DOUBLE>, named low and high, with an entry per indexed column, NULL where the statistics do
        not tell.
    """
    columns = revision.columns if revision is not None else ()
    return bounds_of([find_stored(schema, column) for column in columns])


def bounds_of(columns: Sequence[FoundColumn | None]) -> tuple[Column, Column]:
    """The same for any columns.

    Args:
        columns: of the table; None for one that it no longer has.
    """
    arrays = []
    for key, name in (("minValues", "low"), ("maxValues", "high")):
        values = [_bound(column, key) for column in columns]
        array = F.array(*values) if values else F.array().cast("array<double>")
        arrays.append(array.alias(name))
    return arrays[0], arrays[1]


def _bound(column: FoundColumn | None, key: str) -> Column:
    if column is None or any("'" in part for part in column.stored_path):
        return F.lit(None).cast("double")
    path = "".join(f"['{part}']" for part in column.stored_path)
    return numeric_value(F.get_json_object("stats", f"$['{key}']{path}"), column.data_type)


def numeric_value(text: Column, data_type: DataType) -> Column:
    """A value of a file's statistics as DOUBLE in the order of its type; NULL where it cannot be read.

    Args:
        text: the value as statistics have it.
        data_type: the column's type.
    """
    match data_type:
        case StringType() | BinaryType():
            digits = F.rpad(F.hex(F.substring(text.cast("binary"), 1, TEXT_BYTES)), 2 * TEXT_BYTES, "0")
            return F.conv(digits, 16, 10).try_cast("double")
        case DateType():
            return F.unix_date(text.try_cast("date")).cast("double")
        case TimestampType() | TimestampNTZType():
            return F.unix_micros(text.try_cast("timestamp")).cast("double")
        case _:
            return text.try_cast("double")
