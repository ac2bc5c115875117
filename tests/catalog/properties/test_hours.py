"""Hours of the day, against a clock that goes minute by minute."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidArgumentError
from catalog.properties.fleet_properties import FLEET_HOURS
from catalog.properties.hours import Hours

MINUTE = 60_000
ZONES = st.sampled_from(["UTC", "Europe/Madrid", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
CLOCK = st.tuples(st.integers(0, 23), st.integers(0, 59))
# Days around changes of clocks, and others.
MOMENTS = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from(
        [datetime(2026, month, day, tzinfo=timezone.utc) for month, day in ((3, 28), (10, 24), (4, 4), (7, 1))]
    ),
    st.integers(0, 3 * 24 * 60),
)


def _millis(moment):
    return int(moment.timestamp() * 1000)


@given(begin=CLOCK, end=CLOCK, zone=ZONES, moment=MOMENTS)
def test_hours_are_those_of_the_clock_on_the_wall(begin, end, zone, moment):
    if begin == end:
        return
    hours = Hours.of("{:02}:{:02}-{:02}:{:02} {}".format(*begin, *end, zone))
    local = moment.astimezone(ZoneInfo(zone))
    at, first, last = (60 * h + m for h, m in ((local.hour, local.minute), begin, end))
    # Minutes from the begin, around the clock.
    expected = (at - first) % 1440 < (last - first) % 1440
    assert hours.contains(_millis(moment)) == expected
    next_begin = hours.next_begin(_millis(moment))
    assert _millis(moment) < next_begin <= _millis(moment) + 25 * 60 * MINUTE
    shown = datetime.fromtimestamp(next_begin / 1000, ZoneInfo(zone))
    skipped = ZoneInfo(zone).utcoffset(shown.replace(tzinfo=None)) != ZoneInfo(zone).utcoffset(
        shown.replace(tzinfo=None) - timedelta(hours=2)
    )
    assert (shown.hour, shown.minute) == begin or skipped
    assert Hours.of(str(hours)) == hours


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1:00-5:00", "01:00-05:00 UTC"),
        (" 22:30 - 05:00  Europe/Madrid ", "22:30-05:00 Europe/Madrid"),
        ("18:00-24:00", "18:00-00:00 UTC"),
    ],
)
def test_ways_to_write_hours(text, written):
    assert str(FLEET_HOURS.parse(text)) == written


@pytest.mark.parametrize("text", ["", "1-5", "25:00-03:00", "01:60-02:00", "03:00-03:00", "01:00-05:00 Madrid", "a"])
def test_other_texts_are_refused(text):
    with pytest.raises(InvalidArgumentError, match=r"use\.fleet\.hours.*accepted: hours of the day"):
        FLEET_HOURS.parse(text)
