"""Which unindexed files are taken, and since when; Spark is asked for time zones only."""

from dataclasses import replace
from datetime import datetime

import pytest
from listed_tables import findings, unindexed

from catalog.errors import InvalidArgumentError
from procedures.selection.timestamps import WrittenTime, instant


def _groups(*sizes, rows=10, **options):
    """The groups among files of these sizes, one after another; the last finding is a sentence where there are none."""
    files = [unindexed(f"f{i}", size, time=i, rows=rows) for i, size in enumerate(sizes)]
    return list(findings(files, "UnindexedFiles", options={name: str(value) for name, value in options.items()}))


def test_groups_take_the_oldest_files_until_their_bytes_are_crossed():
    first, second = _groups(6, 6, 6, batch_bytes=10)
    assert [file.path for file in first.files] == ["f0", "f1"]
    assert (first.strategy, first.revision_id, first.reason) == ("UnindexedFiles", 0, "UNINDEXED")
    assert (first.bytes, first.rows) == (12, 20)
    assert "2 of 3" in first.note
    assert "1 of 1" in second.note


def test_without_files_it_says_so():
    assert _groups() == ["UnindexedFiles: no unindexed files"]
    (sentence,) = _groups(from_timestamp="5")
    assert sentence == "UnindexedFiles: no unindexed files modified since epoch millisecond 5"


def test_rows_of_a_group_are_unknown_when_one_file_does_not_tell():
    files = [unindexed("f"), replace(unindexed("g"), known=False)]
    (group,) = findings(files, "UnindexedFiles")
    assert group.rows is None


def test_files_before_a_time_are_left_alone():
    (group,) = _groups(5, 5, from_timestamp="1")
    assert [file.path for file in group.files] == ["f1"]
    assert "1 of 1 unindexed files modified since epoch millisecond 1," in group.note


@pytest.mark.parametrize(
    ("text", "local", "zone"),
    [
        ("2023-05-06", "2023-05-06", None),
        ("2023-05-06 07:08", "2023-05-06T07:08:00", None),
        ("2023-05-06T07:08:09.5", "2023-05-06T07:08:09.500000", None),
        ("2023-05-06 07:08:09Z", "2023-05-06T07:08:09", "Z"),
        ("2023-05-06 07:08:09+01:00", "2023-05-06T07:08:09", "+01:00"),
        ("2023-05-06 07:08:09 Europe/Madrid", "2023-05-06T07:08:09", "Europe/Madrid"),
    ],
)
def test_written_times(text, local, zone):
    assert WrittenTime.of("from_timestamp", text) == WrittenTime(None, datetime.fromisoformat(local), zone)


@pytest.mark.parametrize("text", ["0", " 1700000000000 "])
def test_epoch_milliseconds(text):
    assert WrittenTime.of("from_timestamp", text) == WrittenTime(int(text))


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "1.5", "-1", "2023-13-01", "2023-02-30", "2023-1-1", "²", "9" * 30, "2023-01-01 25:00", "٢٠٢٣"],
)
def test_what_is_no_time(text):
    with pytest.raises(InvalidArgumentError, match="from_timestamp"):
        WrittenTime.of("from_timestamp", text)


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("2023-07-01 12:00:00", "UTC", "2023-07-01T12:00:00"),
        ("2023-07-01 12:00:00", "Europe/Madrid", "2023-07-01T10:00:00"),
        ("2023-07-01 12:00:00", "+05:30", "2023-07-01T06:30:00"),
        ("2023-07-01 12:00:00", "PST", "2023-07-01T19:00:00"),
        ("2023-01-01", "Europe/Madrid", "2022-12-31T23:00:00"),
        # A zone that is written is read, whatever the session's is.
        ("2023-07-01 12:00:00Z", "Europe/Madrid", "2023-07-01T12:00:00"),
        ("2023-07-01 12:00:00 America/New_York", "Europe/Madrid", "2023-07-01T16:00:00"),
        # An hour that clocks leave out, and one that they show twice.
        ("2023-03-26 02:30:00", "Europe/Madrid", "2023-03-26T01:30:00"),
        ("2023-10-29 02:30:00", "Europe/Madrid", "2023-10-29T00:30:00"),
    ],
)
def test_times_are_read_as_spark_reads_them(spark, set_conf, text, zone, utc):
    set_conf("spark.sql.session.timeZone", zone)
    found = instant(spark, "from_timestamp", text)
    assert found.millis == datetime.fromisoformat(f"{utc}+00:00").timestamp() * 1000
    assert found.millis == spark.sql("SELECT unix_millis(CAST(:t AS TIMESTAMP))", {"t": text}).first()[0]
    named = WrittenTime.of("from_timestamp", text).zone or zone
    assert found.text.endswith(f" {named}")


def test_an_unknown_time_zone_is_refused(spark):
    with pytest.raises(InvalidArgumentError, match=r"from_timestamp = '2023-01-01 Europe/Madri' .* is not a time zone"):
        instant(spark, "from_timestamp", "2023-01-01 Europe/Madri")
