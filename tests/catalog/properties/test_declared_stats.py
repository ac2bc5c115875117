"""What owners may say about their columns, and how it is refused."""

import json

import pytest
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from catalog.columns.column_names import find_column
from catalog.errors import UseError
from catalog.properties.declared_stats import declared_stats, with_quantiles
from catalog.properties.index_properties import COLUMN_STATS_KEY, COLUMNS_KEY, COMPATIBILITY_KEY, IndexConfiguration
from otree.transformation import DeclaredStats

SCHEMA = StructType(
    [
        StructField("a", LongType()),
        StructField("d", DoubleType()),
        StructField("p", DecimalType(10, 2)),
        StructField("s", StringType()),
        StructField("day", DateType()),
        StructField("t", TimestampType()),
        StructField("n", TimestampNTZType()),
        StructField("ok", BooleanType()),
        StructField("in", StructType([StructField("x", LongType())])),
        StructField("new", LongType(), metadata={"delta.columnMapping.physicalName": "col-1"}),
    ]
)
DAY = 86_400_000


def test_what_is_declared():
    text = json.dumps(
        {
            "A_min": -5, "A_max": 5, "d_quantiles": [0, 0.5, 0.5, 2], "s_quantiles": ["", "b", "ö"],
            "day_min": "1970-01-02", "day_max": 2 * DAY, "t_min": "1970-01-01T01:00:00+01:00", "t_max": "1970-01-02",
            "n_quantiles": ["1970-01-01 00:00:00.123", "1970-01-01T00:00:01Z"], "p_min": 0.5, "p_max": 1,
            "in.x_min": 0, "in.x_max": 9, "new_min": 1, "new_max": 2,
        }
    )  # fmt: skip
    assert declared_stats(text, SCHEMA) == {
        "a": DeclaredStats(-5, 5),
        "d": DeclaredStats(quantiles=(0.0, 0.5, 0.5, 2.0)),
        "s": DeclaredStats(quantiles=("", "b", "ö")),
        "day": DeclaredStats(DAY, 2 * DAY),
        "t": DeclaredStats(0, DAY),
        "n": DeclaredStats(quantiles=(123.0, 1000.0)),
        "p": DeclaredStats(0.5, 1.0),
        "in.x": DeclaredStats(0, 9),
        "col-1": DeclaredStats(1, 2),
    }
    assert declared_stats(None, SCHEMA) == declared_stats(" ", SCHEMA) == {}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "JSON"),
        ("[1]", "JSON object"),
        ('{"a": 1}', "columnStats: a"),
        ('{"_min": 1}', "columnStats: _min"),
        ('{"b_min": 1}', "'b'"),
        ('{"a_min": 1}', "a_max must be given"),
        ('{"a_max": 1}', "a_min must be given"),
        ('{"a_min": 1, "a_max": 1}', "columnStats: a_min"),
        ('{"a_min": "1", "a_max": 2}', "columnStats: a_min = '1'"),
        ('{"a_min": 1.5, "a_max": 2}', "whole number"),
        ('{"a_min": true, "a_max": 2}', "columnStats: a_min"),
        ('{"d_min": NaN, "d_max": 2}', "columnStats: d_min"),
        ('{"s_min": "a", "s_max": "b"}', "quantiles only"),
        ('{"s_quantiles": ["a", 1]}', "columnStats: s_quantiles = 1"),
        ('{"s_quantiles": ["b", "a"]}', "ascending"),
        ('{"d_quantiles": [1]}', "at least two"),
        ('{"d_quantiles": [1, 1]}', "not all the same"),
        ('{"d_quantiles": 1}', "columnStats: d_quantiles"),
        ('{"day_min": "yesterday", "day_max": "1970-01-01"}', "columnStats: day_min = 'yesterday'"),
        ('{"t_min": "1970-01-01 25:00", "t_max": 1}', "ISO"),
        ('{"ok_min": 0, "ok_max": 1}', "boolean"),
        ('{"in.y_min": 0, "in.y_max": 1}', "'in.y'"),
    ],
)
def test_what_is_refused(text, named):
    with pytest.raises(UseError) as refused:
        declared_stats(text, SCHEMA)
    assert named in refused.value.message


def test_quantiles_are_added_to_what_is_there():
    column = find_column(SCHEMA, "T")
    text = with_quantiles('{"a_min": 0, "a_max": 3, "T_quantiles": [1, 2]}', SCHEMA, column, (0.0, 1500.0))
    assert json.loads(text) == {
        "a_min": 0, "a_max": 3, "t_quantiles": ["1970-01-01 00:00:00.000", "1970-01-01 00:00:01.500"],
    }  # fmt: skip
    assert declared_stats(text, SCHEMA)["t"].quantiles == (0.0, 1500.0)
    far = with_quantiles("", SCHEMA, column, (-1e15, 1e15))
    assert declared_stats(far, SCHEMA)["t"].quantiles == (-1e15, 1e15)


def _of(columns, **more):
    return IndexConfiguration.of({COLUMNS_KEY: columns, **more}, SCHEMA, None)


def test_declarations_follow_the_transformation():
    said = {COLUMN_STATS_KEY: '{"a_min": 0, "a_max": 9, "a_quantiles": [0, 4, 9]}'}
    assert _of("a,ok,d", **said).declared == (DeclaredStats(0, 9), DeclaredStats(0, 1), DeclaredStats())
    assert _of("a:quantiles,ok:hashing", **said).declared == (DeclaredStats(quantiles=(0, 4, 9)), DeclaredStats())


def test_what_the_published_format_cannot_express_is_recorded_or_refused():
    wide = "a,in.x,ok,n,t:hashing,day:hashing,s"
    assert _of(wide).extensions == {
        "in.x": "bigint", "ok": "boolean", "n": "timestamp_ntz", "t": "timestamp", "day": "date",
    }  # fmt: skip
    assert json.loads(_of(wide).remembered({}, 7)["use.index.extensions.7"]) == _of(wide).extensions
    assert _of("a,s,t,day,p:quantiles", **{COMPATIBILITY_KEY: "qbeast"}).extensions == {}
    for column in ("in.x", "ok", "n", "t:hashing"):
        with pytest.raises(UseError) as refused:
            _of(column, **{COMPATIBILITY_KEY: "qbeast"})
        assert refused.value.code == "USE_UNINDEXABLE_TYPE"
        assert COMPATIBILITY_KEY in refused.value.message
    for feature in ({"delta.enableDeletionVectors": "true"}, {"delta.columnMapping.mode": "name"}):
        with pytest.raises(UseError, match="lose rows"):
            _of("a", **{COMPATIBILITY_KEY: "qbeast"}, **feature)
    with pytest.raises(UseError, match="'qbeast', or nothing"):
        _of("a", **{COMPATIBILITY_KEY: "delta"})


@pytest.mark.parametrize("depth", [1, 500, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nested_values_are_refused_by_a_code(depth, opening):
    closing = "]" if opening == "[" else "}"
    text = '{"a_min": 0, "a_quantiles": ' + "[" + opening * depth + "1" + closing * depth + "]}"
    with pytest.raises(UseError, match="at most two levels") as refused:
        declared_stats(text, SCHEMA)
    assert refused.value.code == "USE_TOO_COMPLEX"
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("number", [10**400, -(10**400), "1e999"])
def test_numbers_beyond_those_of_a_column_are_refused(number):
    with pytest.raises(UseError, match="a finite number is expected") as refused:
        declared_stats(f'{{"a_min": 0, "a_max": {number}}}', SCHEMA)
    assert refused.value.code == "USE_INVALID_ARGUMENT"
