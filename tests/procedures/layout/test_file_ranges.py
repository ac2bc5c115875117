"""Ranges from Delta's file statistics: exact where they tell, and None where a job has to look."""

import json

from otree.transformation import ColumnStats
from otree.transformer import Transformer
from procedures.layout.file_ranges import ranges_of_files


def told(low, high, data_type, nulls=0, rows=10):
    text = json.dumps(
        {"numRecords": rows, "minValues": {"c": low}, "maxValues": {"c": high}, "nullCount": {"c": nulls}}
    )
    return ranges_of_files([text], [Transformer("linear", "c", data_type)])


def test_ranges_are_in_the_unit_of_the_index():
    assert told(1, 5, "IntegerDataType") == [ColumnStats(1, 5)]
    assert told(1, 2.5, "DecimalDataType") == [ColumnStats(1.0, 2.5)]
    assert told("1970-01-02", "1970-01-03", "DateDataType") == [ColumnStats(86_400_000, 172_800_000)]
    assert told("1970-01-01T00:00:01.500Z", "1970-01-01T02:00:00.000+01:00", "TimestampDataType") == [
        ColumnStats(1500, 3_600_000)
    ]


def test_files_are_joined_and_those_of_nulls_only_have_no_range():
    files = [
        '{"numRecords":2,"minValues":{"c":3},"maxValues":{"c":4},"nullCount":{"c":0}}',
        '{"numRecords":2,"minValues":{"c":-3},"maxValues":{"c":1},"nullCount":{"c":1}}',
        '{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{"c":2}}',
    ]
    linear, hashed = Transformer("linear", "c", "LongDataType"), Transformer("hashing", "d", "StringDataType")
    assert ranges_of_files(files, [linear, hashed]) == [ColumnStats(-3, 4), ColumnStats(None, None)]
    assert ranges_of_files(files[2:], [linear]) == [ColumnStats(None, None)]


def test_what_is_not_told_has_no_answer():
    linear = Transformer("linear", "c", "DoubleDataType")
    assert ranges_of_files([None], [linear]) is None
    assert ranges_of_files(['{"numRecords":2}'], [linear]) is None
    assert told("NaN", "NaN", "DoubleDataType") is None
    assert told("yesterday", "today", "DateDataType") is None
    assert told("1970-01-01T00:00:01.500", "1970-01-01T00:00:01.500", "TimestampDataType") is None
