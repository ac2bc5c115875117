"""What rewrites are worth: never more than scans read, and never less than nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.fleet.offer import FRESH_SHARE, LEAST_SAVING_PER_BYTE, Offer, saved_per_scan
from procedures.fleet.reads import ReadRate
from procedures.groups.group import Concatenate, FileRun, InputFile, Relayout
from procedures.groups.read_costs import OPENING

TARGET = 128_000_000
costs = st.none() | st.tuples(st.floats(1, 10), st.floats(0.5, 10))


def _files(sizes, first=0):
    return tuple(InputFile(f"f{first + n}", "", size, None, -1, 0, 0) for n, size in enumerate(sizes))


def _relayout(*sizes, revision=0, read_cost=None):
    return Relayout("S", revision, "R", _files(sizes), read_cost=read_cost)


def _concatenate(*sizes, revision=0, read_cost=None):
    files = _files(sizes)
    return Concatenate("S", revision, "R", files, read_cost=read_cost, runs=(FileRun(tuple(f.path for f in files)),))


sizes = st.lists(st.integers(1, 10**10), min_size=1, max_size=5)
groups = st.builds(
    lambda make, sizes, revision, read_cost: make(*sizes, revision=revision, read_cost=read_cost),
    st.sampled_from((_relayout, _concatenate)),
    sizes,
    st.integers(0, 2),
    costs,
)
plans = st.lists(groups, max_size=4)


def test_files_without_an_index_are_read_whole():
    saved = saved_per_scan([_relayout(60, 40)], 0.5, 1_000, TARGET)
    assert saved == pytest.approx(100 * (1 - FRESH_SHARE))


def test_scans_that_skip_files_by_other_means_save_only_what_they_read():
    assert saved_per_scan([_relayout(900)], 0.1, 1_000, TARGET) == pytest.approx(100 * (1 - FRESH_SHARE))


def test_groups_of_a_judge_save_what_reads_become_cheaper():
    plan = [_relayout(100, revision=1, read_cost=(2.0, 1.5)), _relayout(100, revision=1, read_cost=(1.5, 1.0))]
    assert saved_per_scan(plan, 0.5, 1_000, TARGET) == pytest.approx(250)
    assert saved_per_scan([_relayout(100, revision=1, read_cost=(1.0, 2.0))], 0.5, 1_000, TARGET) == 0


def test_concatenated_files_are_opened_less_often():
    few, many = (saved_per_scan([_concatenate(*[1] * count)], 1.0, 1_000, TARGET) for count in (2, 10))
    assert few == pytest.approx(OPENING * TARGET, rel=0.001)
    assert many == pytest.approx(9 * OPENING * TARGET, rel=0.001)


@given(plans, st.floats(0, 1), st.integers(0, 10**9))
def test_scans_save_something_and_no_more_than_they_read_and_open(plan, share_read, rest):
    table_bytes = sum(group.bytes for group in plan) + rest
    saved = saved_per_scan(plan, share_read, table_bytes, TARGET)
    opened = sum(len(group.files) for group in plan) * OPENING * TARGET
    assert 0 <= saved <= share_read * (table_bytes + opened) * (1 + 1e-9)


@given(plans, st.floats(0.01, 1), st.floats(0, 100), st.floats(1 / 16, 4))
def test_an_offer_is_what_scans_save_each_day(plan, share_read, per_day, correction):
    table_bytes = sum(group.bytes for group in plan) + 1
    offer = Offer.of(plan, ReadRate(per_day, share_read, True), table_bytes, TARGET, correction)
    assert offer.saving == pytest.approx(saved_per_scan(plan, share_read, table_bytes, TARGET) * per_day * correction)
    assert offer.cost == sum(group.bytes for group in plan)
    assert offer.saving_per_byte == pytest.approx(offer.saving / max(offer.cost, 1))


def test_rewrites_have_to_save_their_bytes_within_days():
    assert Offer(LEAST_SAVING_PER_BYTE * 100, 100, True).is_worthwhile
    assert not Offer(LEAST_SAVING_PER_BYTE * 99, 100, True).is_worthwhile
    assert not Offer(0.0, 0, False).is_worthwhile


def test_a_table_that_nobody_read_since_its_last_rewrite_waits():
    rate = ReadRate(1000.0, 0.1, True)
    assert Offer.of([_relayout(10)], rate, 1_000, TARGET).is_worthwhile
    assert not Offer.of([_relayout(10)], rate, 1_000, TARGET, is_read=False).is_worthwhile


def test_a_new_table_without_records_is_worth_its_first_index():
    assert Offer.of([_relayout(1_000)], ReadRate.of(None), 1_000, TARGET).is_worthwhile
