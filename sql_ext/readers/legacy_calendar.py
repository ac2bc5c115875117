"""Dates and times of files in the hybrid calendar, which is Julian before 1582-10-15.

Spark 2 wrote such files, and later versions do with ``spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY``. Spark
converts the values when it reads them.

Source:
    ``DataSourceUtils`` and ``RebaseDateTime`` of Apache Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog.errors import NotSupportedError
from sql_ext.readers.table_columns import Field, is_struct, name_in_file

_VERSION = b"org.apache.spark.version"
_ROW_TYPE = b"org.apache.spark.sql.parquet.row.metadata"
_ZONE, _UTC = b"org.apache.spark.timeZone", (b"UTC", b"Etc/UTC", b"GMT", b"Z")

_CUTOVER_DAY = -141_427  # 1582-10-15
_DAY_MICROS = 86_400_000_000
# Before 1900, the two calendars of Java may have other offsets of a time zone.
_FIRST_COMMON_MICROS = -2_208_988_800_000_000


@dataclass(frozen=True)
class LegacyCalendar:
    """Which values of a file are in the hybrid calendar.

    Attributes:
        first_day: dates before it are, in days since 1970; None = no date is.
        first_micros: times before it are, in microseconds since 1970; None = no time is.
    """

    first_day: int | None
    first_micros: int | None

    @classmethod
    def of(cls, parquet: pq.ParquetFile) -> LegacyCalendar | None:
        """Returns the calendar of a file as Spark finds it; None if no value is in the hybrid calendar.

        Files of other writers are in today's calendar, as Spark 4 takes them by default.

        Args:
            parquet: the file.
        """
        metadata = parquet.metadata.metadata or {}
        # A file of Spark without a version is from before Spark 2.4 wrote it. Spark itself leaves it to a setting.
        version = metadata.get(_VERSION, b"" if _ROW_TYPE in metadata else None)

        def is_legacy(first_version: bytes, mark: bytes) -> bool:
            return version is not None and (version < first_version or mark in metadata)

        dates = is_legacy(b"3.0.0", b"org.apache.spark.legacyDateTime")
        schema = parquet.schema
        has_int96 = any(schema.column(number).physical_type == "INT96" for number in range(len(schema)))
        times = is_legacy(b"3.1.0", b"org.apache.spark.legacyINT96") if has_int96 else dates
        if not dates and not times:
            return None
        first_micros = _CUTOVER_DAY * _DAY_MICROS if metadata.get(_ZONE) in _UTC else _FIRST_COMMON_MICROS
        return cls(_CUTOVER_DAY if dates else None, first_micros if times else None)

    def check(self, array: pa.Array, field: Field, file: str) -> None:
        """Refuses values in the hybrid calendar, in the fields and elements of nested columns, too.

        Args:
            array: values of a column as the file has them.
            field: the column.
            file: name of the file for the error.

        Raises:
            NotSupportedError: there is such a value; the message names file and column.
        """
        for values, kind in _leaves(array, field["type"]):
            if pa.types.is_date(values.type):
                numbers, first = values.cast(pa.int32()), self.first_day
            elif kind == "timestamp" and pa.types.is_timestamp(values.type):
                # Spark never converts TIMESTAMP_NTZ.
                micros = values.cast(pa.timestamp("us", values.type.tz), safe=False)
                numbers, first = micros.cast(pa.int64()), self.first_micros
            else:
                continue
            least = pc.min(numbers).as_py()
            if first is not None and least is not None and least < first:
                limit = "1900" if first == _FIRST_COMMON_MICROS else "1582-10-15"
                raise NotSupportedError(
                    f"The column {field['name']} of {file} has values of before {limit} in the calendar of Spark 2: "
                    "read it with Spark, or leave the column out. Files that Spark rewrites can be read."
                )


def _leaves(array: pa.Array, kind: Any) -> Iterator[tuple[pa.Array, str]]:
    """Values that are not nested, with their types in the log."""
    if isinstance(kind, str):
        yield array.dictionary_decode() if pa.types.is_dictionary(array.type) else array, kind
    elif is_struct(kind):
        names = [field.name for field in array.type]
        for field in kind["fields"]:
            name = name_in_file(field, names)
            if name is not None:
                yield from _leaves(pc.struct_field(array, name), field["type"])
    elif kind["type"] == "array":
        yield from _leaves(array.flatten(), kind["elementType"])
    elif kind["type"] == "map":
        yield from _leaves(array.keys, kind["keyType"])
        yield from _leaves(array.items, kind["valueType"])
