"""The expected rate of reads lies between what is assumed and what was recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.fleet.reads import (
    HALF_LIFE_DAYS,
    PRIOR_SCANS_PER_DAY,
    PRIOR_SHARE_READ,
    ReadRate,
    RecordedUse,
    recency,
    recent_days,
)

uses = st.builds(RecordedUse, st.floats(0, 1e6), st.floats(0, 365), st.floats(0, 1))


def test_without_records_the_rate_is_assumed():
    assert ReadRate.of(None) == ReadRate(PRIOR_SCANS_PER_DAY, PRIOR_SHARE_READ, False)
    nothing = ReadRate.of(RecordedUse(0, 0, 0))
    assert (nothing.scans_per_day, nothing.share_read) == (PRIOR_SCANS_PER_DAY, PRIOR_SHARE_READ)
    assert not nothing.is_recorded


def test_a_table_that_nobody_reads_counts_as_hardly_read():
    rate = ReadRate.of(RecordedUse(0, recent_days(60), 0))
    assert rate.scans_per_day == pytest.approx(0.148, abs=0.001)


@given(uses)
def test_rate_and_share_lie_between_assumption_and_record(use):
    rate = ReadRate.of(use)
    recorded = use.scans / use.days if use.days > 0 else float("inf")
    least, most = sorted((PRIOR_SCANS_PER_DAY, recorded))
    assert least * (1 - 1e-9) <= rate.scans_per_day <= most * (1 + 1e-9)
    least, most = sorted((PRIOR_SHARE_READ, use.share_read))
    assert least - 1e-9 <= rate.share_read <= most + 1e-9
    assert rate.is_recorded == (use.scans > 0)


@given(uses, st.floats(0, 1000))
def test_more_scans_make_a_higher_rate(use, more):
    other = RecordedUse(use.scans + more, use.days, use.share_read)
    assert ReadRate.of(other).scans_per_day >= ReadRate.of(use).scans_per_day


def test_a_scan_counts_half_after_the_half_life():
    assert recency(0) == 1
    assert recency(-1) == 1, "clocks differ"
    assert recency(HALF_LIFE_DAYS) == pytest.approx(0.5)
    assert recent_days(0) == 0


@given(st.floats(0, 100), st.floats(0, 100))
def test_days_are_the_sum_of_their_moments(one, other):
    first, last = sorted((one, other))
    assert recent_days(first) <= recent_days(last) <= last + 1e-9
    # The moments before the first time, seen from the last one, count by its recency.
    assert recent_days(last) == pytest.approx(recent_days(last - first) + recency(last - first) * recent_days(first))


@given(st.floats(0.1, 1000), st.floats(1, 60))
def test_a_steady_rate_is_found_whatever_the_age_of_the_records(per_day, days):
    steps = 1000
    ages = [(n + 0.5) * days / steps for n in range(steps)]
    scans = sum(per_day * days / steps * recency(age) for age in ages)
    assert scans / recent_days(days) == pytest.approx(per_day, rel=0.01)
