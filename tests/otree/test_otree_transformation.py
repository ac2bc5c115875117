"""Transformations: JSON spelling, coordinates, intervals, head-room."""

import json
import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.data_types import format_data_type
from otree.errors import IndexFormatError
from otree.transformation import (
    ColumnStats,
    DeclaredStats,
    EmptyTransformation,
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    Transformation,
    transformation_from_json,
)
from otree.transformation.hashing import HASH_SEED, murmur3_32
from otree.transformer import Transformer, make_transformation

LINEAR = '{"className":"io.qbeast.core.transform.LinearTransformation",'
IDENTITY = '{"className":"io.qbeast.core.transform.IdentityTransformation",'
GOLDEN = [
    LINEAR + '"minNumber":0,"maxNumber":999,"nullValue":147,"orderedDataType":"IntegerDataType"}',
    LINEAR + '"minNumber":0,"maxNumber":9990000000000,"nullValue":1071604723472,"orderedDataType":"LongDataType"}',
    LINEAR + '"minNumber":0.0,"maxNumber":1498.5,"nullValue":460.45932,"orderedDataType":"FloatDataType"}',
    LINEAR + '"minNumber":0.0,"maxNumber":1248.75,"nullValue":328.1647120978826,"orderedDataType":"DoubleDataType"}',
    LINEAR + '"minNumber":0.0,"maxNumber":1098.9,"nullValue":77.64613458676946,"orderedDataType":"DecimalDataType"}',
    LINEAR
    + '"minNumber":1700000000000,"maxNumber":1703596400000,"nullValue":1702195390485,'
    + '"orderedDataType":"TimestampDataType"}',
    LINEAR
    + '"minNumber":1704067200000,"maxNumber":1790380800000,"nullValue":1708242113821,"orderedDataType":"DateDataType"}',
    '{"className":"io.qbeast.core.transform.HashTransformation","nullValue":-1341184382}',
    IDENTITY + '"identityValue":7,"orderedDataType":"IntegerDataType"}',
    IDENTITY + '"identityValue":7.0,"orderedDataType":"DoubleDataType"}',
    IDENTITY + '"identityValue":null,"orderedDataType":"DoubleDataType"}',
    '{"className":"io.qbeast.core.transform.EmptyTransformation"}',
]
NULLS = ColumnStats(None, None)
INT, LONG, DOUBLE, FLOAT = "IntegerDataType", "LongDataType", "DoubleDataType", "FloatDataType"


@pytest.mark.parametrize("text", GOLDEN)
def test_golden_json(text: str) -> None:
    """What the format shows is written back identically."""
    assert json.dumps(transformation_from_json(json.loads(text)).to_json(), separators=(",", ":")) == text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"className":"io.qbeast.core.transform.StringHistogramTransformation"}', "StringHistogram"),
        ("{}", "className"),
        (LINEAR + '"minNumber":0.5,"maxNumber":9,"orderedDataType":"IntegerDataType"}', "minNumber"),
        (LINEAR + '"minNumber":9,"maxNumber":9,"orderedDataType":"IntegerDataType"}', "maxNumber"),
        (LINEAR + '"minNumber":0,"maxNumber":"9","orderedDataType":"LongDataType"}', "maxNumber"),
        (LINEAR + '"minNumber":0,"maxNumber":1e999,"orderedDataType":"DoubleDataType"}', "maxNumber"),
        (LINEAR + '"minNumber":0,"maxNumber":9,"orderedDataType":"StringDataType"}', "StringDataType"),
        ('{"className":"io.qbeast.core.transform.HashTransformation","nullValue":0.5}', "nullValue"),
    ],
)
def test_wrong_json_is_refused(text: str, named: str) -> None:
    """The message names the field or class."""
    with pytest.raises(IndexFormatError, match=named):
        transformation_from_json(json.loads(text))


def test_a_missing_null_value_may_be_anywhere() -> None:
    """The format allows the null value to be absent; ours go to the minimum then."""
    read = transformation_from_json(
        json.loads(LINEAR + '"minNumber":3,"maxNumber":9,"orderedDataType":"LongDataType"}')
    )
    assert read == LinearTransformation(3, 9, None, LONG)
    assert read.null_coordinate == 0.0
    assert read.null_interval == HashTransformation(None).null_interval == (0.0, 1.0)
    assert LinearTransformation(3, 9, 9, LONG).null_interval == (1.0, 1.0)


@pytest.mark.parametrize(
    ("content", "seed", "expected"),
    [
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"", 0xFFFFFFFF, 0x81F16F39),
        (b"test", 0, 0xBA6BD213),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
        (b"\xff\xff\xff\xff", 0, 0x76293B50),
        (b"!Ce\x87", 0, 0xF55B516B),
        (b"!Ce", 0, 0x7E4A8634),
        (b"!C", 0, 0xA0F7B07A),
        (b"!", 0, 0x72661CF4),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_murmur_known_answers(content: bytes, seed: int, expected: int) -> None:
    """Published vectors of MurmurHash3_x86_32."""
    assert murmur3_32(content, seed) == expected


def test_hash_transformation() -> None:
    """Equality finds one point; anything else, and text that has no one spelling, is the whole axis."""
    space = HashTransformation(-5)
    point = (murmur3_32("é€".encode(), HASH_SEED) & 0x7FFFFFFF) / 2147483647.0
    assert space.coordinate("é€") == point
    assert space.interval("é€", "é€") == (point, point)
    assert space.coordinate(None) == space.null_coordinate == space.coordinate("-5") == space.coordinate(-5)
    for lower, upper in ((None, None), ("a", None), (None, "a"), ("a", "b"), (1.0, 1.0), (1, 1.0), (True, True)):
        assert space.interval(lower, upper) == (0.0, 1.0)
    assert space.coordinate(1.5) == space.coordinate("1.5")
    assert space.coordinate(Decimal("1.50")) == space.coordinate("1.50")
    assert HashTransformation.for_column("a") == HashTransformation.for_column("a")
    assert HashTransformation.for_column("a") != HashTransformation.for_column("b")
    assert space.covers(NULLS)
    assert space.covers(ColumnStats(1, 2))


def test_identity_and_empty() -> None:
    """Everything lies at 0; identity covers its one value and nulls only."""
    for space in (IdentityTransformation(7, INT), IdentityTransformation(None, INT), EmptyTransformation()):
        assert space.coordinate(7) == space.coordinate(None) == space.null_coordinate == 0.0
        assert space.interval(None, 5) == space.interval(9, None) == (0.0, 0.0)
        assert space.covers(NULLS)
    assert IdentityTransformation(7, INT).covers(ColumnStats(7, 7))
    assert not IdentityTransformation(7, INT).covers(ColumnStats(7, 8))
    assert not IdentityTransformation(None, INT).covers(ColumnStats(7, 7))
    # A single read from text as a decimal is the same single.
    assert IdentityTransformation(0.10000000149011612, FLOAT).covers(ColumnStats(0.1, 0.1))


ANY_NUMBER = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.just(10**400) | st.decimals(allow_nan=False)
SPACES = st.sampled_from(
    [
        LinearTransformation(0, 999, 147, INT),
        LinearTransformation(-(2**63), 2**63 - 1, 0, LONG),
        LinearTransformation(1700000000000, 1703596400000, 1702195390485, "TimestampDataType"),
        LinearTransformation(-1.5, 0.1, 0.0, DOUBLE),
        LinearTransformation(-3.4e38, 3.4e38, 0.0, FLOAT),
        LinearTransformation(-8.9e307, 8.9e307, 0.0, DOUBLE),
        LinearTransformation(0.0, 1e-300, 0.0, "DecimalDataType"),
    ]
)


@given(SPACES, ANY_NUMBER, ANY_NUMBER, ANY_NUMBER)
def test_linear_is_monotone_and_intervals_hold(
    space: LinearTransformation, first: int | float, second: int | float, third: int | float
) -> None:
    """Order is kept, and a value between two others lies in their interval."""
    low, middle, high = sorted((first, second, third))
    assert 0.0 <= space.coordinate(low) <= space.coordinate(middle) <= space.coordinate(high) <= 1.0
    for lower in (None, low):
        for upper in (None, high):
            start, end = space.interval(lower, upper)
            assert start <= space.coordinate(middle) <= end


@given(SPACES)
def test_linear_special_values(space: LinearTransformation) -> None:
    """NaN and infinity are last, minus infinity first, and an unbounded range holds them."""
    nan, infinity = math.nan, math.inf
    assert space.coordinate(nan) == space.coordinate(infinity) == 1.0
    assert space.coordinate(-infinity) == space.coordinate(space.minimum) == 0.0
    assert space.coordinate(space.maximum) >= 1.0 - 2**-52
    assert space.interval(0, None)[1] == space.interval(0, nan)[1] == 1.0
    assert space.interval(None, 0)[0] == 0.0
    assert space.interval(nan, None) == (1.0, 1.0)
    assert space.null_coordinate == space.coordinate(space.null_value)


def test_linear_arithmetic_is_the_formats() -> None:
    """The factor is a reciprocal, decimals and longs go through doubles, milliseconds are whole."""
    space = LinearTransformation(0.0, 49.0, 0.0, DOUBLE)
    assert space.coordinate(49.0) == 49.0 * (1.0 / 49.0) == 1.0 - 2**-53
    assert space.coordinate(Decimal("0.1")) == space.coordinate(0.1)
    times = LinearTransformation(0, 10, 0, "TimestampDataType")
    assert times.coordinate(4.9) == times.coordinate(4)
    assert times.interval(4.9, 4.9) == (times.coordinate(4), times.coordinate(5))
    with pytest.raises(TypeError):
        space.coordinate("1")


@pytest.mark.parametrize(
    ("spark_type", "name"),
    [
        ("tinyint", INT),
        ("smallint", INT),
        ("int", INT),
        ("bigint", LONG),
        ("decimal(10,2)", "DecimalDataType"),
        ("timestamp", "TimestampDataType"),
        ("date", "DateDataType"),
        ("string", "StringDataType"),
        ("boolean", INT),
        ("timestamp_ntz", "TimestampDataType"),
        ("binary", "StringDataType"),
        ("array<int>", None),
        ("struct<a:int>", None),
    ],
)
def test_data_types(spark_type: str, name: str | None) -> None:
    """Spark's names become the format's, or nothing."""
    assert format_data_type(spark_type) == name


def _linear(data_type: str) -> Transformer:
    return Transformer("linear", "c", data_type)


def test_first_transformations() -> None:
    """No values, one value and a range; without a previous space there is no head-room."""
    assert make_transformation(_linear(INT), NULLS) == IdentityTransformation(None, INT)
    assert make_transformation(_linear(INT), ColumnStats(4, 4)) == IdentityTransformation(4, INT)
    assert make_transformation(_linear(INT), ColumnStats(4, 9)) == LinearTransformation(4, 9, 4, INT)
    after_nulls = make_transformation(_linear(INT), ColumnStats(4, 9), IdentityTransformation(None, INT))
    assert after_nulls == LinearTransformation(4, 9, 4, INT)
    assert isinstance(make_transformation(Transformer("empty", "c", ""), NULLS), EmptyTransformation)
    old = HashTransformation(3)
    text = Transformer("hashing", "c", "StringDataType")
    assert make_transformation(text, NULLS, old) is old
    assert make_transformation(text, NULLS) == HashTransformation.for_column("c")


def test_head_room() -> None:
    """Room is added only where the data left the range, and bounded by the type."""
    old = LinearTransformation(0, 100, 0, LONG)
    assert make_transformation(_linear(LONG), ColumnStats(5, 100), old) is old
    assert make_transformation(_linear(LONG), ColumnStats(5, 150), old) == LinearTransformation(0, 300, 0, LONG)
    assert make_transformation(_linear(LONG), ColumnStats(-50, 20), old) == LinearTransformation(-200, 100, -200, LONG)
    constant = IdentityTransformation(7, LONG)
    assert make_transformation(_linear(LONG), ColumnStats(7, 9), constant) == LinearTransformation(7, 11, 7, LONG)
    top = LinearTransformation(0, 2**31 - 5, 0, INT)
    assert make_transformation(_linear(INT), ColumnStats(0, 2**31 - 1), top).to_json()["maxNumber"] == 2**31 - 1


DAY = 86_400_000


@pytest.mark.parametrize("data_type", ["TimestampDataType", "DateDataType"])
def test_head_room_of_times(data_type: str) -> None:
    """Three spans toward later times, one toward earlier ones."""
    old = LinearTransformation(0, 100 * DAY, 0, data_type)
    later = make_transformation(_linear(data_type), ColumnStats(5 * DAY, 150 * DAY), old)
    assert later == LinearTransformation(0, 600 * DAY, 0, data_type)
    earlier = make_transformation(_linear(data_type), ColumnStats(-50 * DAY, 20 * DAY), old)
    assert earlier == LinearTransformation(-200 * DAY, 100 * DAY, -200 * DAY, data_type)


@pytest.mark.parametrize(
    ("newest", "now", "end"),
    [
        (100, 100.5, 200),
        (100, 112, 200),
        (100, 113, 100),
        (100, 88, 200),
        (100, 87, 100),
        (2, 2.9, 4),
        (2, 3.1, 2),
    ],
)
def test_first_times_up_to_now_have_head_room(newest: float, now: float, end: float) -> None:
    """Within an eighth of the span, or within a day, more will follow; a table of old times stays exact."""
    stats = ColumnStats(0, newest * DAY, now=int(now * DAY))
    made = make_transformation(_linear("TimestampDataType"), stats)
    assert made == LinearTransformation(0, end * DAY, 0, "TimestampDataType")
    assert make_transformation(_linear(LONG), stats) == LinearTransformation(0, newest * DAY, 0, LONG)
    declared = replace(stats, declared=DeclaredStats(0, 1000 * DAY))
    assert make_transformation(_linear("TimestampDataType"), declared).value_at(1.0) == 1000 * DAY


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("base", [1, 30, 730])
def test_two_years_of_appends_make_few_revisions(base: int, batch: int) -> None:
    """The number of ranges grows with the logarithm of the days; on a large base, one suffices for years."""
    ranges: list[Transformation] = []
    for day in range(base, base + 730, batch):
        first = 0 if not ranges else day
        stats = ColumnStats(first * DAY, (day + batch) * DAY - 1, now=(day + batch) * DAY)
        made = make_transformation(_linear("TimestampDataType"), stats, ranges[-1] if ranges else None)
        if not ranges or made is not ranges[-1]:
            ranges.append(made)
    assert len(ranges) <= {1: 6, 30: 4, 730: 1}[base]


@given(
    st.sampled_from([INT, LONG, DOUBLE, FLOAT, "DecimalDataType"]),
    st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1)), min_size=2),
)
def test_new_spaces_cover_the_data(data_type: str, values: list[tuple[float, int]]) -> None:
    """However the values jump, each new space covers them and the space before, and its JSON is read back."""
    previous: Transformation | None = None
    for real, whole in values:
        value: int | float = real if data_type in (DOUBLE, "DecimalDataType") else whole
        if data_type == INT:
            value = whole >> 32
        stats = ColumnStats(min(value, 0), max(value, 0))
        space = make_transformation(_linear(data_type), stats, previous)
        assert space.covers(stats)
        assert transformation_from_json(json.loads(json.dumps(space.to_json()))) == space
        assert make_transformation(_linear(data_type), stats, space) is space
        previous = space


@pytest.mark.parametrize("low", [2**60, 2**63 - 2, -(2**63), 2**53, 0])
def test_neighbouring_large_numbers(low: int) -> None:
    """Two numbers that are one double still get a range with two ends."""
    space = make_transformation(_linear(LONG), ColumnStats(low, low + 1))
    assert isinstance(space, LinearTransformation)
    assert space.minimum <= low < low + 1 <= space.maximum
    assert 0.0 <= space.coordinate(low) <= space.coordinate(low + 1) <= 1.0


def test_tiny_doubles() -> None:
    """A range whose reciprocal overflows is widened."""
    space = make_transformation(_linear(DOUBLE), ColumnStats(0.0, 5e-324))
    assert 0.0 <= space.coordinate(5e-324) <= 1.0
    with pytest.raises(IndexFormatError, match="dataType"):
        _linear("StringDataType")
