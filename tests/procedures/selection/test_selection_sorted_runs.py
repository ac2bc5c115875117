"""SortedRunCompaction without Spark: estimates, the choice of runs, and four stories of small appends."""

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from file_lists import COLUMNS, ListedFile
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.files.file_table import FileTable
from otree.pages import PAGE_ROWS, page_rows_of
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.groups.cutter import Limits
from procedures.groups.judge import Judge, overall
from procedures.groups.read_costs import (
    Regions,
    bands_of,
    costs_of_fresh_layout,
    costs_per_file,
    divided,
    quantiles,
    read_mix,
)
from procedures.selection.merge_choice import HYSTERESIS, Budget, Choice, Merge, choose
from procedures.selection.sorted_run_compaction import findings_of

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))

import ingest_simulation as simulation
import size_simulation
from simulated_table import regions_of

TARGET = 100_000.0


def runs(*sizes, low=0.0, high=1.0):
    """One file with all weights per size, each of a write of its own."""
    n = len(sizes)
    size = np.array(sizes, float)
    ends = np.full((n, 2), low), np.full((n, 2), high)
    return Regions(size, size, np.zeros(n), np.ones(n), *ends, np.arange(n))


def chosen(files, rewrites=1.0, most=4.0, target=1.25, most_bytes=10**12):
    """What is chosen where each row was rewritten so many times, on average."""
    budget = Budget(most, float(np.sum(rewrites * files.size)))
    return choose(Judge(files, TARGET), target, budget, Limits(most_bytes, 10_000))


@st.composite
def file_lists(draw):
    n = draw(st.integers(0, 30))
    floats = st.floats(0, 1)
    rows = np.array(draw(st.lists(st.integers(1, 300_000), min_size=n, max_size=n)), float)
    ends = np.sort(np.array(draw(st.lists(st.tuples(floats, floats), min_size=n, max_size=n)), float).reshape(n, 2))
    boxes = np.sort(np.array(draw(st.lists(st.tuples(floats, floats), min_size=2 * n, max_size=2 * n)), float))
    boxes = boxes.reshape(n, 2, 2)
    writes = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), np.int64)
    rewrites = np.array(draw(st.lists(st.floats(0, 5), min_size=n, max_size=n)), float)
    end = np.minimum(np.maximum(ends[:, 1], ends[:, 0] + 1e-6), 1.0)
    first = np.minimum(ends[:, 0], 0.999)
    return Regions(rows, rows, first, end, boxes[..., 0], boxes[..., 1], writes), rewrites


def weights_overlap(files):
    """Whether the weights of two writes do."""
    spans = [(files.first[files.write == w].min(), files.end[files.write == w].max()) for w in set(files.write)]
    return any(a[0] < b[1] and b[0] < a[1] for a, b in combinations(spans, 2))


@given(file_lists(), st.floats(1, 8), st.integers(1, 10_000_000), st.floats(1, 3))
@settings(max_examples=60, deadline=None)
def test_groups_keep_the_cap_and_the_limit_and_each_makes_reads_cheaper(listed, most, most_bytes, target):
    files, rewrites = listed
    choice = chosen(files, rewrites, most, target, most_bytes)
    assert np.isfinite(choice.cost)
    if choice.cost <= target:
        assert choice.merges == ()
    taken = [number for merge in choice.merges for number in merge.files.tolist()]
    assert len(taken) == len(set(taken))
    assert all(weights_overlap(files.take(merge.files)) for merge in choice.merges)
    total = files.size.sum()
    assert (rewrites * files.size).sum() + sum(m.size for m in choice.merges) <= max(
        most * total * (1 + 1e-9), (rewrites * files.size).sum()
    )
    cost = choice.cost
    for merge in choice.merges:
        assert merge.writes == len(set(files.write[merge.files].tolist())) >= 2
        assert merge.size == pytest.approx(files.size[merge.files].sum())
        assert merge.size <= most_bytes
        assert 0 < merge.end - merge.first <= 1
        assert merge.before == pytest.approx(cost)
        assert merge.after < merge.before
        cost = merge.after
    assert choice.after == pytest.approx(cost)


@given(st.lists(st.integers(10, 1_500), min_size=1, max_size=8))
@settings(max_examples=10, deadline=None)
def test_merging_comes_to_an_end(sizes):
    """Each merge is applied as the estimate lays it out: no row of one write is ever merged with itself."""
    table = simulated(sizes)
    table.optimize()
    before = [f.write for f in table.files]
    written = table.written
    table.optimize()
    assert (table.written, [f.write for f in table.files]) == (written, before)


def simulated(sizes):
    random = np.random.default_rng(3)
    total = sum(sizes)
    weights = random.integers(MIN_WEIGHT, MAX_WEIGHT, total).astype(np.int32)
    table = simulation.PagedTable(random.random((total, 2)), weights, 2_000, 100)
    start = 0
    for size in sizes:
        table.unindexed.append(np.arange(start, start + size))
        table.index()
        start += size
    return table


def test_small_runs_of_all_weights_become_one():
    (merge,) = chosen(runs(1000, 1000, 1000, 1000)).merges
    assert merge.writes == 4
    assert (merge.first, merge.end) == (0.0, 1.0)


def test_nothing_is_merged_below_the_target():
    files = runs(1000, 1000, 1000, 1000)
    cost = chosen(files).cost
    assert chosen(files, target=cost).merges == ()
    assert chosen(files, target=cost * 0.99).merges


def test_merges_stop_short_of_a_fresh_layout():
    """Of the groups that would make reads cheaper, no more are merged than the target needs."""
    table = simulated([60_000, *[1_500] * 8])
    judge = Judge(regions_of(table.files), 2_000.0, 100)
    target = 1 + 0.6 * (judge.cost - 1)
    choice = choose(judge, target, Budget(9.0, 0.0), Limits(8_000, 10_000))
    stop = 1 + HYSTERESIS * (target - 1)
    assert judge.cost > target
    assert choice.after <= stop + 1e-9
    assert len(choice.merges) > 1
    assert choice.merges[-1].before > stop


def test_one_write_is_never_merged_with_itself():
    files = replace(runs(1000, 1000, 1000), write=np.zeros(3, np.int64))
    assert chosen(files).merges == ()


def test_a_merge_beyond_the_cap_waits():
    choice = chosen(runs(1000, 1000), rewrites=3.5)
    assert choice.merges == ()
    assert choice.waiting is not None


def test_no_group_is_larger_than_the_limit_and_large_tables_have_groups():
    """Two writes of many files each, which cannot be one group, are merged part by part."""
    side = np.arange(16) / 16
    low = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=1)
    low = np.concatenate([low, low])
    size = np.full(len(low), TARGET)
    ends = np.zeros(len(low)), np.ones(len(low))
    files = Regions(size, size, *ends, low, low + 1 / 16, np.repeat([0, 1], len(low) // 2))
    choice = chosen(files, target=1.0, most_bytes=int(8 * TARGET))
    assert len(choice.merges) > 20
    assert max(merge.size for merge in choice.merges) <= 8 * TARGET
    for merge in choice.merges:
        extent = files.high[merge.files].max(axis=0) - files.low[merge.files].min(axis=0)
        assert np.prod(extent) <= 8 / 256 + 1e-9


def test_a_fresh_layout_costs_what_is_estimated_for_it():
    """The estimate of files that are there and of files that would be written agree, within a tenth."""
    table = simulated([60_000])
    regions = regions_of(table.files)
    mix = read_mix(2)
    planned = costs_of_fresh_layout(60_000, 60_000, bands_of(60_000, 60_000, 2_000), mix, 2_000, 100)
    found = costs_per_file(regions, mix, 100)
    actual = np.concatenate([found.bytes.sum(axis=1) / planned.bytes, found.files.sum(axis=1) / planned.files])
    assert np.all(np.abs(np.log(actual)) < 0.7), actual
    assert abs(np.log(actual).mean()) < 0.25
    assert overall(found.weighed(2_000).sum(axis=1) / planned.weighed(2_000)) < 1.5


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e6), st.integers(1, 1000)), min_size=1, max_size=20))
def test_quantiles_are_ordered_and_cover_all_rows(ranges):
    low = np.array([start for start, _, _ in ranges])
    high = low + np.array([length for _, length, _ in ranges])
    rows = np.array([float(count) for *_, count in ranges])
    first, last = quantiles(low, high, rows)
    assert np.all((first >= -1e-9) & (last <= 1 + 1e-9) & (last >= first - 1e-9))
    assert first[np.argmin(low)] == pytest.approx(0.0, abs=1e-6)
    assert last[np.argmax(high)] == pytest.approx(1.0, abs=1e-6)


def test_unknown_ranges_count_as_everything():
    first, last = quantiles(np.array([np.nan, 1.0]), np.array([2.0, np.nan]), np.ones(2))
    assert (first.tolist(), last.tolist()) == ([0, 0], [1, 1])


def test_pages_shrink_with_the_share_of_a_write():
    assert page_rows_of(1_000, 1_000) == PAGE_ROWS
    assert page_rows_of(250, 1_000) == PAGE_ROWS / 2
    assert page_rows_of(1, 1_000_000) == PAGE_ROWS / 2
    assert page_rows_of(0, 0) >= 1


def files_of(count, **unknown):
    """Files of ten rows, one cube and all weights each; of the second one, some columns are not known."""
    rows = []
    for number in range(count):
        listed = ListedFile(f"f{number}", 100, 1, 3, f"w{number}", (("", 0, 1, 10),), 0, True, MAX_WEIGHT + 1)
        row = listed.of_columns() | {"band_first": MIN_WEIGHT, "low": [0.0], "high": [1.0]}
        rows.append(row | unknown if number == 1 else row)
    return FileTable.of(pa.Table.from_pylist(rows, schema=COLUMNS))


def test_files_without_tags_or_statistics_are_files_of_all_weights_and_values():
    files = Regions.of(files_of(2, band_first=None, band_end=None, low=[None], high=[None], rows=None))
    assert files.first.tolist() == [0, 0]
    assert files.end.tolist() == [1, 1]
    assert (files.low[1, 0], files.high[1, 0]) == (0, 1)
    assert files.rows.tolist() == [10, 10]
    assert files.write.tolist() == [0, 1]


def test_a_selection_says_what_reads_cost():
    merge, files = Merge(np.array([0, 2]), 200.0, 0.0, 0.1, 2, 1.5, 1.25), files_of(3)
    (group,) = findings_of(Choice((merge,), None, 1.5, 1.25, 2.0), files, 3, 1.3, 4.0)
    assert [(f.path, f.level) for f in group.files] == [("f0", 1), ("f2", 1)]
    assert (group.revision_id, group.weight_span, group.read_cost) == (3, 0.1, (1.5, 1.25))
    assert "reads cost 1.50 times a fresh layout, above use.optimization.targetReadCost = 1.3" in group.note
    assert "and 1.25 once 200 bytes are rewritten" in group.note


def what_is_said(choice, **is_again):
    """Reason and cost of what was passed over, and whether a sentence says that nothing is merged."""
    found = list(findings_of(choice, files_of(3), 3, 1.3, 4.0, **is_again))
    skipped = [(f.reason, f.files, f.bytes, f.read_cost) for f in found if not isinstance(f, str)]
    return skipped, [f for f in found if isinstance(f, str)]


def test_waiting_has_a_reason():
    merge = Merge(np.array([0, 2]), 200.0, 0.0, 0.1, 2, 1.5, 1.25)
    skipped, sentences = what_is_said(Choice((), merge, 1.5, 1.5, 2.0))
    assert skipped == [("WRITE_AMPLIFICATION", 2, 200, 1.5)]
    assert "reads cost 1.50 times a fresh layout in revision 3; nothing to merge" in sentences[0]
    assert what_is_said(Choice((), merge, 1.2, 1.2, 2.0, unpaid=0.0))[0] == [("WRITE_AMPLIFICATION", 2, 200, 1.2)]
    assert what_is_said(Choice((), None, 1.2, 1.2, 2.0))[0] == [("READ_COST_BELOW_TARGET", 3, 300, 1.2)]
    one_write = replace(files_of(3), write=np.zeros(3, np.int64))
    (sentence,) = findings_of(Choice((), None, 1.2, 1.2, 2.0), one_write, 3, 1.3, 4.0)
    assert isinstance(sentence, str)
    assert what_is_said(Choice((), None, 1.2, 1.2, 2.0, unpaid=0.4))[0] == [("RECORDED_READS_TOO_FEW", 3, 300, 1.2)]


def test_what_came_out_of_merges_is_said():
    assert what_is_said(Choice((), None, 1.0, 1.0, 2.0))[0] == []
    assert what_is_said(Choice((), None, 1.0, 1.0, 2.0), is_again=True)[0] == [("READ_COST_BELOW_TARGET", 3, 300, 1.0)]


@pytest.mark.parametrize("story", simulation.STORIES, ids=lambda story: story.name)
def test_a_story_of_small_appends_stays_as_cheap_as_a_fresh_layout(story):
    scaled = replace(story, appends=60, every=6)
    last = simulation.run(scaled, 20_000, 0.05, checks=1)[-1]
    assert last["rewritten"] <= 4.0, last
    samples = [value[0] for read, value in last.items() if read.startswith("sample")]
    assert max(samples) <= 1.25, last
    # Estimates are of the mean over the mix; single reads of so small a table are larger by a page or a file.
    reads = [value for value in last.values() if isinstance(value, tuple)]
    assert np.mean([b for b, _ in reads]) <= 1.25, last
    # Files of different times overlap little, so that they are not merged for their number.
    assert np.mean([f for _, f in reads]) <= (2.5 if story.name == "time" else 1.75), last
    assert max(b for b, _ in reads) <= 1.5, last


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=4), st.floats(0, 10_000))
def test_a_region_is_divided_into_parts_of_equal_volume(extents, parts):
    """Parts are cubes as far as no side is longer than that of the region."""
    (sides,) = divided(np.array(extents), np.array([parts]))
    assert np.prod(sides) == pytest.approx(np.prod(extents) / max(parts, 1), rel=1e-6)
    assert (sides <= np.array(extents) * (1 + 1e-9)).all()
    cut = sides < np.array(extents) * (1 - 1e-6)
    assert sides[cut] == pytest.approx(np.full(cut.sum(), sides.max()), rel=1e-6)


@pytest.mark.parametrize("story", size_simulation.STORIES, ids=lambda story: story.name)
def test_a_table_of_many_files_is_kept_at_the_target_in_small_groups(story):
    """0.1 TB in groups of 1 GB, from an empty table: what is read is counted, not estimated."""
    last = size_simulation.run(story, 0.1, 0.02, 50, 5, checks=1)[-1]
    assert last["written"] <= 4.0, last
    assert last["largest_group"] <= size_simulation.GROUP_BYTES
    assert max(value[0] for value in last.values() if isinstance(value, tuple)) <= 1.5, last


def test_a_fresh_layout_of_columns_that_depend_on_each_other_is_judged_by_their_part_of_the_space():
    """Files along a diagonal cost what they are; overlapping ones cost more, and are merged."""
    random = np.random.default_rng(1)
    place = random.random(40_000)
    points = np.stack([place, place + random.random(40_000) / 1000], axis=1)
    weights = random.integers(MIN_WEIGHT, MAX_WEIGHT, 40_000).astype(np.int32)
    table = simulation.PagedTable(points, weights, 1_000, 30)
    table.unindexed.append(np.arange(20_000))
    table.index()
    fresh = Judge(regions_of(table.files), 1_000.0, 30).cost
    assert 0.6 < fresh < 1.25
    for number in range(20_000, 40_000, 1_000):
        table.unindexed.append(np.arange(number, number + 1_000))
        table.index()
    overlapping = Judge(regions_of(table.files), 1_000.0, 30).cost
    assert overlapping > 1.5 * fresh
    table.optimize()
    assert Judge(regions_of(table.files), 1_000.0, 30).cost <= 1.25


@pytest.mark.parametrize(("end", "rewrites", "merged"), [(1.0, 1.0, True), (1.0, 3.508, False), (0.1, 3.508, True)])
def test_what_is_left_of_the_cap_is_for_low_weights_and_for_what_saves_most(end, rewrites, merged):
    """The group has 4 % of the bytes, which the cap would allow; but then nothing is left for merges that save more."""
    files = runs(96_000, *[1_000] * 4)
    files = replace(files, end=np.array([1.0, *[end] * 4]))
    choice = chosen(files, rewrites=rewrites, most_bytes=5_000)
    assert bool(choice.merges) is merged
    assert (choice.waiting is None) is merged
