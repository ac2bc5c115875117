"""Readers without Spark: values of files in the hybrid calendar, which are refused."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from written_logs import field, struct, write_delta_table

from catalog.errors import NotSupportedError
from sql_ext import readers

UTC_TIME, INT = pa.timestamp("us", "UTC"), pa.int32()
CUTOVER, DAY = -141_427, 86_400_000_000
YEAR_1900 = -25_567 * DAY
VERSION, ROW_TYPE = "org.apache.spark.version", "org.apache.spark.sql.parquet.row.metadata"
DATES, INT96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
ZONE = "org.apache.spark.timeZone"
FIELDS = [field("id", "integer"), field("d", "date"), field("t", "timestamp"), field("n", "timestamp_ntz")]


def _rows(days, micros):
    return pa.table({
        "id": pa.array(range(len(days)), INT),
        "d": pa.array(days, INT).cast(pa.date32()),
        "t": pa.array(micros, pa.int64()).cast(UTC_TIME),
        "n": pa.array(micros, pa.int64()).cast(pa.timestamp("us")),
    })  # fmt: skip


def _table(tmp_path, rows, metadata, fields=FIELDS, *, is_int96=False):
    path = write_delta_table(tmp_path / "t", fields, {"f": rows})
    # Without Arrow's schema, as other writers do.
    options = {"use_deprecated_int96_timestamps": is_int96, "store_schema": False}
    with pq.ParquetWriter(tmp_path / "t" / "f", rows.schema, **options) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(metadata)
    return path


def _refused(path, where=None, columns=None):
    """The column that a scan names when it fails; None if it succeeds."""
    plan, message = readers.scan(path, where=where, columns=columns), None
    try:
        plan.to_table()
    except NotSupportedError as error:
        message = error.message
    named = re.match(f"The column (.) of {path}/f has values of before", message or "")
    assert (named is None) == (message is None)
    return named and named[1]


MODERN = {VERSION: "4.0.1"}


@pytest.mark.parametrize(
    ("metadata", "is_int96", "refused"),
    [
        ({}, False, []),
        ({}, True, []),
        ({DATES: "", INT96: ""}, False, []),  # without a version, Spark 4 takes the values as they are
        (MODERN, False, []),
        ({VERSION: "3.1.0"}, True, []),
        ({**MODERN, ROW_TYPE: "{}"}, True, []),
        ({**MODERN, INT96: ""}, False, []),
        ({**MODERN, DATES: ""}, False, ["d", "t"]),
        ({**MODERN, DATES: ""}, True, ["d"]),
        ({**MODERN, INT96: ""}, True, ["t"]),
        ({VERSION: "3.0.3"}, True, ["t"]),
        ({VERSION: "3.0.0"}, False, []),
        ({VERSION: "2.4.8"}, False, ["d", "t"]),
        ({VERSION: "2.4.8"}, True, ["d", "t"]),
        ({ROW_TYPE: "{}"}, True, ["d", "t"]),
    ],
)
def test_which_files_are_in_the_hybrid_calendar(tmp_path, metadata, is_int96, refused):
    # A whole day, since older versions of Arrow write other times of before 1970 wrongly as INT96.
    path = _table(tmp_path, _rows([CUTOVER - 1, None], [None, YEAR_1900 - DAY]), metadata, is_int96=is_int96)
    assert [name for name in ("id", "d", "t", "n") if _refused(path, columns=[name])] == refused


@pytest.mark.parametrize(
    ("days", "micros", "zone", "refused"),
    [
        (CUTOVER - 1, 0, None, "d"),
        (CUTOVER, YEAR_1900, None, None),
        (0, YEAR_1900 - 1, None, "t"),
        (0, YEAR_1900 - 1, "America/New_York", "t"),
        (0, YEAR_1900 - 1, "UTC", None),
        (0, CUTOVER * DAY, "UTC", None),
        (0, CUTOVER * DAY - 1, "UTC", "t"),
    ],
)
def test_from_when_on_both_calendars_are_equal(tmp_path, days, micros, zone, refused):
    metadata = {VERSION: "4.0.1", DATES: "", INT96: "", **({ZONE: zone} if zone else {})}
    path = _table(tmp_path, _rows([days, 0], [0, micros]), metadata)
    assert _refused(path) == refused
    if refused is None:
        expected = {"d": [days, 0], "t": [0, micros]}
        found = readers.scan(path, columns=["d", "t"]).to_table()
        assert found["d"].cast(INT).to_pylist() == expected["d"]
        assert found["t"].cast(pa.int64()).to_pylist() == expected["t"]


def test_columns_that_are_not_needed_are_not_checked(tmp_path):
    path = _table(tmp_path, _rows([CUTOVER - 1, 0], [0, 0]), {VERSION: "2.4.8"})
    assert _refused(path, "id = 1", ["id", "t"]) is None
    assert _refused(path, "d = DATE'1970-01-01'", ["id"]) == "d"
    assert _refused(path, "id = 1", ["d"]) == "d"


@pytest.mark.parametrize("column", ["s", "l", "k", "v"])
def test_nested_values_are_checked(tmp_path, column):
    def days(ancient):
        return pa.array([CUTOVER - (column == ancient), 0], INT).cast(pa.date32())

    texts = pa.array(["x", "y"])
    rows = pa.table({
        "s": pa.StructArray.from_arrays([days("s")], ["D"]),
        "l": pa.ListArray.from_arrays([0, 1, 2], days("l")),
        "k": pa.MapArray.from_arrays([0, 1, 2], days("k"), texts),
        "v": pa.MapArray.from_arrays([0, 1, 2], texts, days("v")),
    })  # fmt: skip

    def mapped(key, value):
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}

    fields = [
        field("s", struct(field("d", "date"))),
        field("l", {"type": "array", "elementType": "date", "containsNull": True}),
        field("k", mapped("date", "string")),
        field("v", mapped("string", "date")),
    ]
    path = _table(tmp_path, rows, {VERSION: "2.4.8"}, fields)
    assert [name for name in ("s", "l", "k", "v") if _refused(path, columns=[name])] == [column]
