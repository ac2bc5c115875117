"""Which unindexed files are taken, and since when; Spark is asked for time zones only."""

from datetime import datetime

import pytest

from catalog.errors import InvalidArgumentError
from procedures.groups.plan import InputFile
from procedures.groups.selection_strategy import MAX_FILES_PER_GROUP, take_until
from procedures.selection.timestamps import WrittenTime, instant
from procedures.selection.unindexed_files import choose


def _files(*sizes):
    return [InputFile(f"f{i}", "", size, 10, -1, i, i) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "limit", "taken"),
    [
        ([], 10, 0),
        ([5], 10, 1),
        ([50], 10, 1),
        ([5, 5, 5], 10, 2),
        ([5, 4, 5, 1], 10, 3),
        ([0, 0, 0], 1, 3),
        ([5, 5, 5], 10**12, 3),
    ],
)
def test_take_until_includes_the_crossing_file(sizes, limit, taken):
    files = _files(*sizes)
    assert take_until(files, limit) == tuple(files[:taken])


def test_take_until_asks_for_no_file_after_the_crossing_one():
    asked = []

    def endless():
        for number in range(10**9):
            asked.append(number)
            yield _files(4)[0]

    assert len(take_until(endless(), 10)) == 3
    assert len(asked) <= 4


def test_take_until_bounds_the_number_of_files():
    assert len(take_until(_files(*[0] * (MAX_FILES_PER_GROUP + 5)), 1)) == MAX_FILES_PER_GROUP


def test_choose_takes_the_first_bytes_in_the_given_order():
    files = _files(6, 6, 6)
    found = choose(iter(files), 10, 3)
    assert found.group is not None
    assert found.group.files == tuple(files[:2])
    assert (found.group.strategy, found.group.revision_id, found.group.reason) == ("UnindexedFiles", 0, "UNINDEXED")
    assert (found.group.bytes, found.group.rows) == (12, 20)
    assert "2 of 3" in found.group.note


def test_choose_without_files_says_so():
    found = choose(iter(()), 10, 0)
    assert found.group is None
    assert "no unindexed files" in found.note


def test_rows_of_a_group_are_unknown_when_one_file_does_not_tell():
    first, second = _files(1, 1)
    group = choose([first, InputFile("g", "", 1, None, -1, 0, 0), second], 100, 3).group
    assert group is not None
    assert group.rows is None


def test_choose_says_since_when():
    assert (
        "1 of 1 unindexed files modified since 2023-01-01 00:00:00 UTC,"
        in choose(_files(1), 10, 1, "2023-01-01 00:00:00 UTC").group.note
    )
    assert choose([], 10, 0, "yesterday UTC").note == "UnindexedFiles: no unindexed files modified since yesterday UTC"


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
