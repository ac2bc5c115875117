"""The parts of a table's health without Spark: each defect alone, and facts in proportion to the number of files."""

import sys
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from file_lists import COLUMNS, REVISIONS
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.files.arrays import UNKNOWN
from catalog.files.file_table import FileTable
from otree.cube import CubeId
from otree.weight import MIN_WEIGHT
from procedures.groups.group import Relayout
from procedures.groups.read_costs import bands_of
from procedures.insight.health.adviser import MeasuredIndex, steps_of
from procedures.insight.health.health_parts import HealthFacts, parts_of
from procedures.insight.health.remedy import Remedy
from procedures.insight.health.score import SCALES, score_of
from procedures.selection.leveled_compaction import _first

ROW_BYTES = 100
TARGET_ROWS = 10_000
TARGET_BYTES = ROW_BYTES * TARGET_ROWS
NEWEST = replace(REVISIONS[1], desired_cube_size=TARGET_ROWS)
READS = {"sample_1_percent", "sample_10_percent", "box_1_percent", "join_1_percent"}


def _file(number, rows, low, high, band, write="w0"):
    cube = CubeId(2, tuple(number // 4**digit % 4 for digit in reversed(range(9)))).text
    return {
        "path": f"part-{number:07d}",
        "deletion_vector": "",
        "size": round(rows) * ROW_BYTES,
        "modification_time": 0,
        "rows": round(rows),
        "revision": NEWEST.revision_id,
        "blocks": [(cube, band[0], band[1] - 1, round(rows))],
        "write_id": write,
        "first_time": 0,
        "last_time": 0,
        "outdated": False,
        "unreadable": False,
        "band_first": band[0],
        "band_end": band[1],
        "rewrites": 1.0,
        "low": list(low),
        "high": list(high),
        "tagged_revision": NEWEST.revision_id,
        "deleted": 0,
        "tier": 0,
        "partition": "",
    }


def _regions(count, low=(0.0, 0.0), high=(1.0, 1.0)):
    """Divides a square into rectangles of equal area."""
    if count == 1:
        return [(low, high)]
    axis = int(high[1] - low[1] > high[0] - low[0])
    first = count // 2
    middle = low[axis] + (high[axis] - low[axis]) * first / count
    ends = [(*high[:axis], middle, *high[axis + 1 :]), (*low[:axis], middle, *low[axis + 1 :])]
    return _regions(first, low, ends[0]) + _regions(count - first, ends[1], high)


def _fresh(count):
    """The files of a fresh index of about so many files: bands of weights, and regions in each."""
    rows = count * TARGET_ROWS
    files = []
    for first, end in bands_of(rows, rows, TARGET_ROWS):
        in_band = rows * (end - first) / 2**32
        regions = _regions(max(1, round(in_band / TARGET_ROWS)))
        files += [_file(len(files) + n, in_band / len(regions), *r, (first, end)) for n, r in enumerate(regions)]
    return files


def _facts(rows, **changes):
    return _facts_of(pa.Table.from_pylist(rows, schema=COLUMNS), **changes)


def _facts_of(table, **changes):
    files = FileTable.of(table)
    facts = HealthFacts(
        name="db.t",
        files=files,
        newest=NEWEST,
        is_indexed=files.revision == NEWEST.revision_id,
        cube_rows=files.rows_of_cubes(NEWEST),
        has_index_columns=True,
        target_bytes=TARGET_BYTES,
        target_read_cost=1.25,
        commits=3,
        commit_bytes=3_000,
        failures=0,
    )
    return replace(facts, **changes)


@pytest.fixture(scope="module")
def fresh():
    return _fresh(200)


def _judged(facts):
    parts = {part.name: part for part in parts_of(facts)}
    return score_of(list(parts.values())), parts, {name for name, part in parts.items() if part.lost}


def _unindexed(row, **changes):
    return {
        **row, "revision": 0, "blocks": None, "band_first": None, "band_end": None, "tagged_revision": None, **changes
    }  # fmt: skip


def test_a_fresh_index_loses_nothing(fresh):
    score, parts, sick = _judged(_facts(fresh))
    assert (score, sick, set(parts)) == (100, set(), set(SCALES))


def test_unindexed_files_make_reads_expensive(fresh):
    """Three of ten files, with the ranges of a write that follows none of the columns."""
    rows = [
        _unindexed(row, low=[0.0, 0.0], high=[1.0, 1.0]) if number % 10 < 3 else row for number, row in enumerate(fresh)
    ]
    score, parts, sick = _judged(_facts(rows))
    expected = sum(row["size"] for row in rows if not row["revision"]) / sum(row["size"] for row in rows)
    assert parts["unindexed_share"].value == pytest.approx(expected)
    assert sick <= {"unindexed_share", "overlap"} | READS
    assert {"unindexed_share", "sample_1_percent"} <= sick
    assert score < 75
    assert parts["unindexed_share"].advice.statement == "CALL use.optimize('db.t')"


def test_small_unindexed_files_alone():
    """A few bytes among many, in far more files than they need."""
    rows = _fresh(200)
    small = [_unindexed(_file(1_000 + n, 10, (n / 60, 0), (n / 60, 0), (0, 1))) for n in range(60)]
    score, parts, sick = _judged(_facts([*rows, *small]))
    assert sick == {"small_files"}
    assert parts["small_files"].value == 60
    assert parts["small_files"].cost_bytes == 59 * 4 * 1024 * 1024
    assert score == 80


def test_fragmentation_alone(fresh):
    """Four writes have a quarter of each cube, side by side: reads open as much as over a fresh index."""
    ids = [row["blocks"][0][0] for row in fresh]
    rows = [
        {**row, "write_id": f"w{n % 4}", "blocks": [(ids[n - n % 4], *row["blocks"][0][1:])]}
        for n, row in enumerate(fresh)
    ]
    score, parts, sick = _judged(_facts(rows, cube_rows=np.zeros(0, np.int64)))
    assert sick == {"fragmentation"}
    assert parts["fragmentation"].value == pytest.approx(0.75, abs=0.01)
    assert 90 < score < 100


def test_overlap_alone(fresh):
    """Files of several writes cover the same region: a box opens more files, whose pages it skips."""
    rows = [{**row, "low": [0.0, 0.0], "high": [1.0, 1.0]} for row in fresh]
    _, parts, sick = _judged(_facts(rows))
    assert "overlap" in sick
    assert sick <= {"overlap", "box_1_percent", "join_1_percent"}
    assert parts["overlap"].value == pytest.approx(len(fresh) / _opened_by_a_box(fresh), rel=0.3)


def _opened_by_a_box(rows):
    sides = [np.minimum(1.0, 0.1 + np.array(r["high"]) - np.array(r["low"])) for r in rows]
    return sum(float(side.prod()) for side in sides)


def test_deleted_rows_alone(fresh):
    rows = [
        {**row, "deletion_vector": "u", "deleted": row["rows"] // 4, "rows": row["rows"] - row["rows"] // 4}
        for row in fresh
    ]
    _, parts, sick = _judged(_facts(rows))
    assert sick == {"deleted_rows"}
    assert parts["deleted_rows"].value == pytest.approx(0.25, abs=0.001)
    total = sum(row["size"] for row in rows)
    assert parts["deleted_rows"].cost_bytes == pytest.approx(total / 4, rel=0.01)
    assert parts["deleted_rows"].advice.statement == "CALL use.compact('db.t')"


@pytest.mark.parametrize(
    ("changes", "part", "value", "cost", "advice"),
    [
        ({"commits": 525, "commit_bytes": 9_000_000}, "log_length", 525, 9_000_000, "CALL use.consolidate_log('db.t')"),
        ({"failures": 2}, "failures", 2, None, "SELECT * FROM db.t.optimizations WHERE state = 'failed'"),
    ],
)
def test_the_log_and_failures_alone(fresh, changes, part, value, cost, advice):
    score, parts, sick = _judged(_facts(fresh, **changes))
    assert sick == {part}
    assert (parts[part].value, parts[part].cost_bytes, parts[part].advice.statement) == (value, cost, advice)
    assert score == round(100 - parts[part].lost)


def test_overfull_cubes_alone(fresh):
    """One cube in ten holds three times the desired rows."""
    over = _facts(fresh).cube_rows.copy()
    over[::10] = 3 * TARGET_ROWS
    _, parts, sick = _judged(_facts(fresh, cube_rows=over))
    assert sick == {"overfull_cubes"}
    assert parts["overfull_cubes"].value == pytest.approx(0.1, abs=0.01)


def test_an_older_revision_advises_its_rewrite(fresh):
    """Files whose weights are hashes of other columns are read whole."""
    rows = [{**row, "revision": 1} if n % 5 == 0 else row for n, row in enumerate(fresh)]
    _, parts, sick = _judged(_facts(rows))
    assert "unindexed_share" not in sick
    assert parts["sample_1_percent"].advice.statement == "CALL use.optimize('db.t', revision_rewrite => true)"


def test_quotes_in_a_name_stay_in_its_literal(fresh):
    part = _judged(_facts(fresh, name="delta.`/it's \\ here`"))[1]["deleted_rows"]
    assert part.advice.statement == "CALL use.compact('delta.`/it\\'s \\\\ here`')"


# ------------------------------------------------------------------------------------------------------------- scale


def _many(count):
    """Files of a hundred writes, a part of them unindexed, and others with deleted rows."""
    rows = _fresh(count)[:count]
    for number, row in enumerate(rows):
        row["write_id"] = f"w{number % 100}"
        row["partition"] = f"p={number % 50}"
        if number % 7 == 0:
            rows[number] = _unindexed(row)
        elif number % 11 == 0:
            row.update(deletion_vector=f"u{number}", deleted=10)
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def _work(table):
    """Calls of functions, and the largest number of bytes in use."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    parts_of(_facts_of(table))
    tracemalloc.start()
    sys.setprofile(count)
    try:
        parts_of(_facts_of(table))
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, peak


def test_work_grows_in_proportion_to_files():
    """Neither calls nor memory grow faster than the files: numpy would need an array of files x files for more."""
    calls, memory = _work(_many(2_000))
    more_calls, more_memory = _work(_many(8_000))
    assert more_calls < 4.5 * calls
    assert more_memory < 5 * memory


@pytest.mark.slow
def test_a_hundred_thousand_files_are_judged_in_seconds():
    table = _many(100_000)
    started = time.perf_counter()
    facts = _facts_of(table)
    read = time.perf_counter()
    parts = parts_of(facts)
    elapsed = time.perf_counter() - started
    print(f"{len(facts.files)} files: columns and tree {read - started:.2f} s, parts {elapsed - read + started:.2f} s")
    assert len(facts.files) == 100_000
    assert {part.name for part in parts} == set(SCALES)
    assert elapsed < 20


def test_unknown_numbers_of_rows_are_no_rows(fresh):
    """Files without statistics do not count as deleted or as rows."""
    facts = _facts([{**row, "rows": None} for row in fresh])
    assert (facts.files.rows == UNKNOWN).all()
    parts = _judged(facts)[1]
    assert parts["deleted_rows"].value == 0
    assert MIN_WEIGHT < 0 < parts["sample_1_percent"].value


@settings(max_examples=15, deadline=None)
@given(st.integers(20, 100), st.integers(1, 12), st.integers(100, TARGET_ROWS), st.booleans())
def test_the_first_indexing_never_lowers_the_score(count, steps, rows, is_sorted):
    """File by file, as the service does it: nobody is paged because an index is on its way."""

    def plain(number):
        low = number / count if is_sorted else 0.0
        high = (number + 1) / count if is_sorted else 1.0
        row = _unindexed(_file(number, rows, (low, 0.0), (high, 1.0), (0, 0)))
        return {**row, "modification_time": number}

    start, *_ = _judged(_facts([plain(n) for n in range(count)], newest=None, cube_rows=np.zeros(0, np.int64)))
    least = start
    for step in range(1, steps + 1):
        done = max(1, count * step // steps)
        share = done / count
        indexed = _fresh(max(1, round(done * rows / TARGET_ROWS)))
        shrunk = done * rows / sum(row["rows"] for row in indexed)
        indexed = [
            {**row, "size": max(1, round(row["size"] * shrunk)), "rows": max(1, round(row["rows"] * shrunk))}
            for row in indexed
        ]
        indexed = [{**row, "path": f"i{n}", "modification_time": count + done} for n, row in enumerate(indexed)]
        score, *_ = _judged(_facts([*indexed, *(plain(n) for n in range(done, count))]))
        assert score >= least - 1, (share, score, least)
    assert score >= 90


def test_files_that_arrive_after_the_index_count(fresh):
    """The same files cost the score nothing if they were there before it, and much if they came later."""
    early = [{**_unindexed(row, path=f"p{n}"), "modification_time": -1} for n, row in enumerate(fresh)]
    late = [{**row, "modification_time": 1} for row in early]
    scores = [_judged(_facts([*fresh, *plain]))[0] for plain in (early, late)]
    assert scores[0] > scores[1] + 20, scores


# ------------------------------------------------------------------------------------------------------------- steps


def _steps(facts, measured=None):
    return steps_of(facts, parts_of(facts), measured)


def _codes(steps):
    return [step.advice.remedy.value for step in steps]


def test_steps_are_in_order_of_what_blocks_and_saves(fresh):
    """One step per statement, however many parts it mends."""
    rows = [_unindexed(row) if n % 2 else {**row, "deletion_vector": "u", "deleted": 10} for n, row in enumerate(fresh)]
    facts = _facts(rows, failures=1, clustering=("a",), commits=99, commit_bytes=10)
    steps = _steps(facts)
    assert _codes(steps) == ["FAILURES", "CLUSTERING", "OPTIMIZE", "LOG"]
    assert [step.saved_bytes for step in steps[:2]] == [None, None]
    assert steps[2].saved_bytes > steps[3].saved_bytes == 10
    measured = _steps(facts, MeasuredIndex("a,b", 7))
    assert (_codes(measured), measured[3].saved_bytes) == (["FAILURES", "CLUSTERING", "LOG", "INDEX"], 7)
    assert measured[3].statement == "CALL use.index(table => 'db.t', columns => 'a,b')"


def test_a_fresh_index_has_nothing_to_do(fresh):
    assert _steps(_facts(fresh)) == ()
    assert _codes(_steps(_facts(fresh, is_outdated=True))) == ["REWRITE"]
    rows = [{**row, "rows": None} if number == 3 else row for number, row in enumerate(fresh)]
    assert _codes(_steps(_facts(rows))) == ["STATISTICS"]


def test_the_newest_revision_is_rewritten_only_for_what_it_costs(fresh):
    """Without bands of weights, samples read all: of 2 MB that is not worth a rewrite, of 200 MB it is."""
    large = [{**row, "band_first": None, "band_end": None} for row in fresh]
    small = [{**row, "size": row["size"] // 100} for row in large]
    assert _codes(_steps(_facts(small, target_bytes=TARGET_BYTES // 100))) == []
    (step,) = _steps(_facts(large))
    assert step.statement == f"CALL use.optimize('db.t', revision_id => {NEWEST.revision_id}, revision_rewrite => true)"
    assert step.saved_bytes > 4 * 1024 * 1024


def test_a_default_optimization_is_advised_only_if_it_would_merge():
    """Three writes are each laid out evenly over the same cubes: reads cost 1.11 times a fresh layout."""
    rows = [{**row, "path": f"w{n}-{row['path']}", "write_id": f"w{n}"} for n in range(3) for row in _fresh(400)]
    facts = _facts(rows, cube_rows=np.zeros(0, np.int64))
    _, parts, sick = _judged(facts)
    assert (sick, _steps(facts)) == ({"fragmentation"}, ())
    (step,) = _steps(replace(facts, target_read_cost=1.1))
    assert step.statement == parts["fragmentation"].advice.statement == "CALL use.optimize('db.t')"


def test_overfull_cubes_advise_the_strategy_that_splits_them(fresh):
    """A default optimization does not look at them; of one write, no rewrite would split them."""
    rows = [{**row, "path": f"w{n}-{row['path']}", "write_id": f"w{n}"} for n in range(3) for row in fresh]
    statement = "CALL use.optimize('db.t', strategy => 'LeveledCompaction')"
    assert statement in [step.statement for step in _steps(_facts(rows))]
    assert isinstance(next(_first(_facts(rows).files, NEWEST, 10**9)), Relayout)
    one_write = _facts([{**row, "write_id": "w0"} for row in rows])
    assert _judged(one_write)[2] == {"overfull_cubes"}
    assert _steps(one_write) == ()


def test_smaller_files_until_they_cost_more_to_open():
    """128 MB in one file: a smaller size is advised, and at that size no other."""
    rows = [{**_file(0, 1_280_000, (0.0, 0.0), (1.0, 1.0), (-(2**31), 2**31))}]
    facts = _facts(rows, target_bytes=128 * 1024 * 1024, cube_rows=np.zeros(0, np.int64))
    (step,) = (step for step in _steps(facts) if step.advice.remedy is Remedy.SMALLER_FILES)
    target = int(step.statement.split("'")[3])
    assert 8 * 1024 * 1024 <= target < 64 * 1024 * 1024
    assert "SMALLER_FILES" not in _codes(_steps(replace(facts, target_bytes=target)))
    assert "SMALLER_FILES" not in _codes(_steps(_facts(_fresh(400), target_bytes=TARGET_BYTES)))
