"""The page index as read here, against the rows of the file."""

from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql_ext.diagnosis.compact_protocol import read_struct
from sql_ext.diagnosis.ordered_values import ordered_value_of, ordered_values
from sql_ext.diagnosis.parquet_pages import pages_of

ROWS = 5_000


def table_of_all_types() -> pa.Table:
    chance = np.random.default_rng(3)
    numbers = chance.integers(-1000, 1000, ROWS)
    some_null = [None if n % 11 == 0 else int(n) for n in numbers]
    return pa.table(
        {
            "whole": pa.array(some_null, pa.int64()),
            "small": pa.array(some_null, pa.int32()),
            "real": pa.array(numbers / 7.0),
            "single": pa.array(numbers.astype(np.float32)),
            "text": pa.array([None if n is None else f"name {n:05}" for n in some_null]),
            "day": pa.array([date(2020, 1, 1 + int(n) % 28) for n in numbers]),
            "at": pa.array([datetime(2020, 1, 1, int(n) % 24, tzinfo=timezone.utc) for n in numbers]),
            "money": pa.array([Decimal(int(n)) / 100 for n in numbers], pa.decimal128(12, 2)),
            "large": pa.array([Decimal(int(n)) / 100 for n in numbers], pa.decimal128(30, 2)),
            "nothing": pa.nulls(ROWS, pa.int64()),
            "inner": pa.array([{"x": int(n)} for n in numbers]),
        }
    )


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(
        table_of_all_types(),
        path,
        write_page_index=True,
        data_page_size=1_000,
        row_group_size=1_500,
        use_dictionary=False,
    )
    return path


NAMES = ("whole", "small", "real", "single", "text", "day", "at", "money", "large", "nothing", "inner.x")


def column(name: str) -> pa.Array:
    rows = table_of_all_types()
    values = rows.column(name.split(".", maxsplit=1)[0]).combine_chunks()
    return values.field("x") if "." in name else values


def test_pages_cover_the_rows_and_bound_their_values(written):
    with pa.OSFile(str(written)) as source:
        found = pages_of(source, NAMES)
    assert set(found) == set(NAMES)
    for name, pages in found.items():
        values, nulls = ordered_values(column(name))
        assert pages.rows.sum() == ROWS
        assert name == "nothing" or len(pages.rows) > 3, name
        firsts = np.cumsum([0, *pages.rows[:-1]])
        for page, (first, rows) in enumerate(zip(firsts, pages.rows, strict=True)):
            own = values[first : first + rows][~nulls[first : first + rows]]
            assert bool(pages.has_value[page]) == (len(own) > 0)
            if len(own):
                assert pages.low[page] <= min(own)
                assert pages.high[page] >= max(own)


def test_a_range_keeps_the_share_of_the_pages_with_its_values(written):
    with pa.OSFile(str(written)) as source:
        pages = pages_of(source, ["whole"])["whole"]
    assert pages.share_within(-1000.0, 1000.0) == pages.rows[pages.has_value].sum() / ROWS
    assert pages.share_within(5000.0, 6000.0) == 0.0


def test_columns_without_an_index_are_left_out(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(table_of_all_types(), path, write_page_index=False)
    with pa.OSFile(str(path)) as source:
        assert pages_of(source, NAMES) == {}


@pytest.mark.parametrize("text", [b"", b"PAR1", b"PAR1" + b"\xff" * 40 + b"PAR1", b"\x00" * 100])
def test_damaged_files_are_refused(tmp_path, text):
    path = tmp_path / "rows.parquet"
    path.write_bytes(text)
    with pa.OSFile(str(path)) as source, pytest.raises((ValueError, pa.ArrowException)):
        pages_of(source, NAMES)


@given(st.binary(max_size=300))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_struct_or_a_value_error(data):
    try:
        read_struct(data)
    except ValueError:
        pass


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_footer_ends_in_a_value_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "rows.parquet"
    pq.write_table(pa.table({"x": list(range(300))}), path, write_page_index=True, data_page_size=100)
    text = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(text))
    with pa.OSFile(str(path)) as source:
        try:
            pages_of(source, ["x"])
        except (ValueError, OSError, pa.ArrowException):
            pass


def test_each_damaged_byte_of_a_footer_ends_in_a_value_error(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": list(range(300))}), path, write_page_index=True, data_page_size=100)
    text = path.read_bytes()
    for place in range(len(text) - 8 - int.from_bytes(text[-8:-4], "little"), len(text)):
        for value in (0, 0x19):  # the end of a struct, and a list
            source = pa.BufferReader(text[:place] + bytes([value]) + text[place + 1 :])
            try:
                pages_of(source, ["x"])
            except (ValueError, OSError, pa.ArrowException):
                pass


def test_literals_have_the_order_of_columns():
    assert ordered_value_of("b") == b"b"
    assert ordered_value_of(Decimal("1.5")) == 1.5
    assert ordered_value_of(float("nan")) == np.inf
    assert ordered_value_of(True) == 1.0
    assert ordered_value_of(None) is None
    values, nulls = ordered_values(pa.array([float("nan"), None, -1.0]))
    assert values.tolist() == [np.inf, 0.0, -1.0]
    assert nulls.tolist() == [False, True, False]
