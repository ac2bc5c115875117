"""Recorded scans as reads, and groups that these reads pay for."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.insights.recorded_scans import Filter, RecordedScan, recorded_scans
from procedures.groups.judge import Judge
from procedures.groups.read_costs import Read, Regions
from procedures.groups.recorded_reads import MOST_READS, RecordedReads, recorded_reads
from procedures.selection.merge_candidates import Limit
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
    recorded = recorded_reads(scans, ["A", "b"], files, regions)
    return recorded, regions


def test_a_scan_without_literals_is_a_box_of_the_rows_that_it_kept():
    rows = 4 * WRITES * TARGET / 10
    recorded, _ = reads_of([scan(filters=[("a", ">=", None), ("B", "<", None)], read=rows, kept=rows / 100)])
    (read,) = recorded.reads
    assert read.sides == pytest.approx((0.1, 0.1))
    assert np.isnan(read.low).all()


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
    assert (read.low[0], read.high[0]) == pytest.approx(place, abs=0.01)
    assert np.isnan(read.low[1])


@pytest.mark.parametrize(
    ("literal", "value"), [("DATE '1970-01-11'", 10), ("TIMESTAMP '1970-01-01 00:00:01.5'", 1.5e6), ("'x'", None)]
)
def test_times_are_the_numbers_of_the_statistics(literal, value):
    regions, times = pairs(1)
    files = Files(low=np.zeros((WRITES, 2)), high=np.full((WRITES, 2), 2 * (value or 1)), modification_time=times)
    recorded = recorded_reads([scan(filters=[("a", "<=", literal)], kept=1)], ["a", "b"], files, regions)
    expected = np.nan if value is None else 0.5
    assert recorded.reads[0].high[0] == pytest.approx(expected, nan_ok=True)


def test_many_scans_become_few_reads_that_stand_for_them():
    recorded, _ = reads_of([scan(time) for time in range(1_000)])
    assert len(recorded.reads) == MOST_READS
    assert recorded.weight * len(recorded.reads) == pytest.approx(1_000)


def chosen(regions, recorded, most=8.0):
    budget = Budget(most, float(regions.size.sum()))
    return choose(Judge(regions, TARGET, recorded=recorded), 1.25, budget, Limit(1e12, 10_000))


def recorded_at(regions, times, read, written=0):
    return RecordedReads((read,) * len(times), np.array(times), 1.0, np.full(len(regions.size), written))


def test_a_part_that_nobody_reads_is_not_merged():
    regions, _ = pairs(8)
    read = Read(1.0, (0.05, 0.05), (0.26, 0.4), (0.31, 0.45))
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
    box = Read(1.0, (0.5, 1.0), (min(start, end), np.nan), (max(start, end), np.nan))
    share = box.met(low, high, parts)
    assert ((share >= 0) & (share <= 1)).all()
    apart = (high[:, 0] < min(start, end)) | (low[:, 0] > max(start, end))
    assert (share[apart] == 0).all()
    inside = (low[:, 0] >= min(start, end)) & (high[:, 0] <= max(start, end)) & (high[:, 0] - low[:, 0] > 1e-6)
    assert share[inside] == pytest.approx(np.ones(inside.sum()))


def stored(lines, enabled="true"):
    """A table with files of records, each named by the time of its newest line."""
    snapshot = SimpleNamespace(configuration={"use.insights.consumption.enabled": enabled}, table_id="t")
    files = {f"{number}-1-{number}.json": text for number, text in lines.items()}
    return SimpleNamespace(snapshot=lambda: snapshot, list_state=lambda _: list(files), read_state=files_of(files))


def files_of(files):
    return lambda name: files[name.rpartition("/")[2]]


def record(time, scan=0, **more):
    line = {"table_id": "t", "finished_at": time, "application_id": "a", "execution_id": time, "scan": scan}
    return json.dumps(line | {"rows_read": 5, "rows_kept": 2} | more)


def test_the_newest_records_are_read_once():
    table = stored(
        {
            9: "\n".join(
                [record(8, sample_fraction=0.1), record(9), "{broken", record(9), record(9, table_id="other")]
            ),
            5: record(5, filters=[{"column": "a", "operator": "<", "literal": "3"}]),
            2: record(2),
        }
    )
    assert [s.time for s in recorded_scans(table, 0)] == [2, 5, 8, 9]
    assert [s.time for s in recorded_scans(table, 5)] == [5, 8, 9]
    assert [s.time for s in recorded_scans(table, 0, most=2)] == [8, 9]
    assert [s.fraction for s in recorded_scans(table, 8)] == [0.1, 1.0]
    assert recorded_scans(table, 5)[0].filters == (Filter("a", "<", "3"),)
    assert recorded_scans(stored({9: record(9)}, enabled="false"), 0) is None
    assert recorded_scans(stored({}), 0) == []


def test_a_table_without_recorded_reads_has_none():
    regions, times = pairs(1)
    assert recorded_reads([], ["a", "b"], Files(**vars(listed(regions, times))), regions) is None
