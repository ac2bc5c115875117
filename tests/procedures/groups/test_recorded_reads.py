"""Recorded scans as reads, and groups that these reads pay for."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.insights.recorded_scans import Filter, RecordedScan, RecordedScans
from procedures.groups.cutter import Limits
from procedures.groups.judge import Judge
from procedures.groups.read_costs import Read, Regions
from procedures.groups.recorded_reads import RecordedReads, recorded_reads
from procedures.selection.merge_choice import Budget, choose

TARGET = 100_000.0
WHOLE = (1.0, 1.0)


WRITES = 6


def pairs(count, written=0):
    """Several writes whose small files overlap, in places side by side along the first column."""
    low = np.repeat(np.stack([np.arange(count) / count, np.zeros(count)], axis=1), WRITES, axis=0)
    high = low + np.array([1 / count, 1.0])
    size = np.full(WRITES * count, TARGET / 10)
    write = np.tile(np.arange(WRITES), count)
    regions = Regions(size, size, np.zeros(len(size)), np.ones(len(size)), low, high, write)
    return regions, np.full(len(size), written)


def listed(regions, times):
    """Files with the values 0 to 1000 in the first column, and 0 to 1 in the second."""
    scale = np.array([1000.0, 1.0])
    return SimpleNamespace(
        low=regions.low * scale, high=regions.high * scale, modification_time=times, __len__=lambda: len(times)
    )


class Files(SimpleNamespace):
    def __len__(self):
        return len(self.modification_time)


def scan(time=1, fraction=1.0, filters=(), read=0, kept=0):
    return RecordedScan(time, fraction, tuple(Filter(*f) for f in filters), read, kept)


def reads_of(scans, count=4):
    regions, times = pairs(count)
    files = Files(**vars(listed(regions, times)))
    recorded = recorded_reads(RecordedScans(tuple(scans), 1.0), ["A", "b"], files, regions)
    return recorded, regions


def test_a_scan_without_literals_is_a_box_of_the_rows_that_it_kept():
    rows = 4 * WRITES * TARGET / 10
    recorded, _ = reads_of([scan(filters=[("a", ">=", None), ("B", "<", None)], read=rows, kept=rows / 100)])
    (read,) = recorded.reads
    assert read.sides == pytest.approx((0.1, 0.1))
    assert read.places == (None, None)


def test_other_filters_do_not_make_the_box_smaller():
    rows = 4 * WRITES * TARGET / 10
    recorded, _ = reads_of([scan(filters=[("a", "=", None), ("other", "=", None)], read=rows / 10, kept=1)])
    assert recorded.reads[0].sides == pytest.approx((0.1, 1.0))


def test_a_condition_that_does_not_decide_makes_no_box():
    recorded, _ = reads_of([scan(0.1, filters=[("a", "f() =", None), ("b", "OR =", None)], read=10, kept=10)])
    assert recorded.reads[0].sides == WHOLE


@pytest.mark.parametrize(
    ("filters", "place"),
    [
        ([("a", ">=", "250"), ("a", "<", "500.0D")], (0.25, 0.5)),
        ([("a", "=", "250L")], (0.25, 0.25)),
        ([("a", "IN", "100, 900")], (0.1, 0.9)),
        ([("a", ">", "1e9")], (1.0, 1.0)),
        ([("a", "<", "CAST(500 AS DECIMAL(10,2))")], (0.0, 0.5)),
    ],
)
def test_literals_say_where_a_box_lies(filters, place):
    recorded, _ = reads_of([scan(filters=filters, read=10, kept=10)])
    (read,) = recorded.reads
    assert read.places == (pytest.approx(place, abs=0.01), None)


@pytest.mark.parametrize(
    ("literal", "value"), [("DATE '1970-01-11'", 10), ("TIMESTAMP '1970-01-01 00:00:01.5'", 1.5e6), ("'x'", None)]
)
def test_times_are_the_numbers_of_the_statistics(literal, value):
    regions, times = pairs(1)
    files = Files(low=np.zeros((WRITES, 2)), high=np.full((WRITES, 2), 2 * (value or 1)), modification_time=times)
    scans = RecordedScans((scan(filters=[("a", "<=", literal)], kept=1),), 1.0)
    (read,) = recorded_reads(scans, ["a", "b"], files, regions).reads
    assert read.places[0] == (None if value is None else (0.0, pytest.approx(0.5)))


def test_a_literal_that_may_have_been_cut_says_nothing():
    listed = ", ".join(map(str, range(100, 180)))
    recorded, _ = reads_of([scan(filters=[("a", "IN", listed[:200])], read=10, kept=10)])
    assert recorded.reads[0].places == (None, None)
    recorded, _ = reads_of([scan(filters=[("a", "IN", listed[:198])], read=10, kept=10)])
    assert recorded.reads[0].places[0] is not None


@given(st.integers(1, 300), st.integers(1, 300), st.floats(0.5, 9))
def test_fewer_scans_stand_for_as_many(count, most, weight):
    scans = RecordedScans(tuple(scan(time) for time in range(count)), weight)
    thinned = scans.thinned(most)
    assert len(thinned.scans) == min(count, most)
    assert thinned.weight * len(thinned.scans) == pytest.approx(weight * count)
    assert [s.time for s in thinned.scans] == sorted({s.time for s in thinned.scans})


def chosen(regions, recorded, most=8.0):
    budget = Budget(most, float(regions.size.sum()))
    return choose(Judge(regions, TARGET, recorded=recorded), 1.25, budget, Limits(None))


def recorded_at(regions, times, read, written=0):
    return RecordedReads((read,) * len(times), np.array(times), 1.0, np.full(len(regions.size), written))


def test_a_part_that_nobody_reads_is_not_merged():
    regions, _ = pairs(8)
    read = Read(1.0, (0.05, 0.05), ((0.26, 0.31), (0.4, 0.45)))
    choice = chosen(regions, recorded_at(regions, [5] * 200, read))
    assert choice.merges
    for merge in choice.merges:
        assert regions.low[merge.files, 0].min() < 0.31
        assert regions.high[merge.files, 0].max() > 0.26


def test_reads_before_a_file_was_written_pay_nothing():
    regions, _ = pairs(8)
    read = Read(1.0, (0.05, 0.05))
    assert chosen(regions, recorded_at(regions, [5] * 500, read)).merges
    unpaid = chosen(regions, recorded_at(regions, [5] * 500, read, written=5))
    assert (unpaid.merges, unpaid.unpaid) == ((), 0.0)


def test_only_reads_of_the_overlap_count():
    """The first write was read long before a second one overlapped it; a third one changes nothing about that."""
    written = np.array([10, 20, 30, 10, 10])
    reads = RecordedReads((Read(1.0, WHOLE),) * 4, np.array([5, 15, 25, 35]), 2.0, written)
    counts = reads.since_overlap(np.arange(5), np.array([0, 3]), np.array([0, 1, 2, 0, 0]))
    assert counts.sum(axis=0).tolist() == [4, 4, 2, 0, 0]


def test_a_group_is_bought_when_reads_have_paid_its_price():
    """The number of reads at which merges begin is the one at which what they would have saved is what is rewritten."""
    regions, _ = pairs(1)
    read = Read(1.0, (0.1, 0.1))
    judge = Judge(regions, TARGET, recorded=recorded_at(regions, [5], read))
    merges = judge.merges(np.arange(WRITES), np.array([0]))
    enough = int(np.ceil(merges.size[0] / merges.saved[0, 0]))
    assert enough > 1
    few = chosen(regions, recorded_at(regions, [5] * (enough - 1), read))
    assert few.merges == ()
    assert 0 < few.unpaid < 1
    assert len(chosen(regions, recorded_at(regions, [5] * enough, read)).merges) == 1
    assert chosen(regions, recorded_at(regions, [5] * enough, read), most=1.0).waiting is not None


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=10),
    st.floats(0, 1), st.floats(0, 1),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_the_parts_that_a_box_meets_are_a_share(regions, start, end):
    low = np.array([[min(a, b), 0.0] for a, b, _ in regions])
    high = np.array([[max(a, b), 1.0] for a, b, _ in regions])
    parts = (high - low) * np.array([[p, 1.0] for *_, p in regions])
    box = Read(1.0, (0.5, 1.0), ((min(start, end), max(start, end)), None))
    share = box.met(low, high, parts)
    assert ((share >= 0) & (share <= 1)).all()
    apart = (high[:, 0] < min(start, end)) | (low[:, 0] > max(start, end))
    assert (share[apart] == 0).all()
    inside = (low[:, 0] >= min(start, end)) & (high[:, 0] <= max(start, end)) & (high[:, 0] - low[:, 0] > 1e-6)
    assert share[inside] == pytest.approx(np.ones(inside.sum()))
