"""The limits of a purge: what callers write, and what they mean."""

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidArgumentError
from procedures.calls.purge import PURGE
from procedures.lifecycle.purge.log_cleanup import COMMITS_WORTH_A_CHECKPOINT, boundary_of
from procedures.lifecycle.purge.older_than import Age, Moment, Version, parse_older_than
from procedures.lifecycle.vacuum.cutoff import Cutoff

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("3 days", Age(72 * HOUR)),
        ("INTERVAL '3' DAY", Age(72 * HOUR)),
        ("interval 1 day 12 hours", Age(36 * HOUR)),
        (timedelta(hours=5), Age(5 * HOUR)),
        (42, Version(42)),
        ("42", Version(42)),
        (0, Version(0)),
        ("2026-01-31", Moment("2026-01-31")),
        (" 2026-01-31 10:00:00 +02:00", Moment("2026-01-31 10:00:00 +02:00")),
        (datetime(2026, 1, 31, tzinfo=timezone.utc), Moment(1_769_817_600_000)),
        (datetime.fromisoformat("2026-01-31 01:00:00"), Moment("2026-01-31 01:00:00")),
        (date(2026, 1, 31), Moment("2026-01-31")),
    ],
)
def test_what_is_accepted(value, meaning):
    assert parse_older_than(value) == meaning


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "-3 days",
        "0 days",
        "3 months",
        "2026-13-01",
        "1.0",
        "100000.0",
        "-1",
        -1,
        True,
        1.5,
        timedelta(0),
        timedelta(days=-1),
    ],
)
def test_what_is_not(value):
    with pytest.raises(InvalidArgumentError, match=r"older_than = .*INTERVAL '3' DAY.*months and years have no fixed"):
        parse_older_than(value)


def test_values_of_other_types_are_told_what_is_accepted():
    """An interval of months comes from SQL as an object of Java."""
    for value in (object(), 1.5, True):
        with pytest.raises(InvalidArgumentError, match=r"older_than = .*a day-time interval above 0 .*fixed length"):
            PURGE.checked({"table": "t", "older_than": value})
    with pytest.raises(InvalidArgumentError, match="dry_run = 1 is not accepted: a BOOLEAN is expected"):
        PURGE.checked({"table": "t", "dry_run": 1})


@given(st.integers(1, 10**12))
def test_an_interval_means_the_same_in_all_forms(millis):
    assert parse_older_than(timedelta(milliseconds=millis)) == parse_older_than(f"{millis} ms") == Age(millis)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.integers(0, 10**13))
def test_unreferenced_files_stay_for_the_floor(hours, floor, now):
    cutoff = Cutoff.of_retention(hours, now, floor)
    assert 0 <= cutoff.unreferenced_before <= cutoff.delete_before <= now
    assert cutoff.unreferenced_before == min(cutoff.delete_before, Cutoff.of_retention(floor, now).delete_before)
    assert cutoff.delete_before + cutoff.retention_hours * HOUR >= now or cutoff.retention_hours == 1_000_000


@given(
    st.integers(0, 10**6),
    st.integers(-1, 10**6),
    st.integers(0, 10**6),
    st.sampled_from([1, COMMITS_WORTH_A_CHECKPOINT]),
)
def test_the_log_keeps_what_must_stay_readable(keep, checkpoint, oldest, worth):
    checkpoint, oldest = min(checkpoint, keep), min(oldest, keep)
    boundary = boundary_of(keep, checkpoint, oldest, worth)
    if boundary is None:
        assert checkpoint < 0
        assert keep - oldest < worth
    else:
        assert boundary.version <= keep
        assert boundary.needs_checkpoint or boundary.version == checkpoint
