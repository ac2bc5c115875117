"""Which files are left alone because of statements: regions that are inferred from changed files, without Spark."""

import numpy as np
import pytest
from file_lists import file_table
from hypothesis import given
from hypothesis import strategies as st

from catalog.insights.recent_statements import Statement
from procedures.groups import active_files as module
from procedures.groups.active_files import Region, active_files, conflicts_anywhere

DAYS = 30
COLUMNS = ("day", "customer")
RANGES = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted)
BOXES = st.lists(st.tuples(RANGES, RANGES), min_size=1, max_size=6)


def arrays(boxes):
    numbers = np.array(boxes, float).reshape(len(boxes), 2, 2)
    return numbers[:, :, 0], numbers[:, :, 1]


def statement(*removed, written=(), compared=("day",), operation="MERGE", partitions=()):
    """A statement that removed files with these ranges of day and customer."""
    low, high = arrays(removed)
    compared = None if compared is None else frozenset(compared)
    return Statement(0, operation, compared, frozenset(partitions), written, low, high)


def days(**more):
    """Two files for each day: f0 and f1 are those of day 0, with customers 0 to 49 and 50 to 99."""
    boxes = [((n // 2, n // 2), (50 * (n % 2), 50 * (n % 2) + 49)) for n in range(2 * DAYS)]
    low, high = arrays(boxes)
    return file_table(len(boxes), low=low.tolist(), high=high.tolist(), **more)


def names(files, statements, partition_columns=()):
    active = active_files(files, statements, COLUMNS, partition_columns)
    return sorted(files.path[active].tolist(), key=lambda name: int(name[1:]))


@pytest.fixture(autouse=True)
def large_tables(monkeypatch):
    monkeypatch.setattr(module, "_SMALL_FILES", 0)


# -------------------------------------------------------------------------------------------------------------- regions


@given(BOXES, BOXES)
def test_a_region_holds_every_file_that_overlaps_all_changed_files(changed, others):
    low, high = arrays(changed)
    files = file_table(len(others), low=arrays(others)[0].tolist(), high=arrays(others)[1].tolist())
    overlaps = Region.of(low, high).overlaps(files)
    for position in range(len(files)):
        meets = (files.low[position] <= high) & (files.high[position] >= low)
        assert overlaps[position] or not meets.all()


@given(BOXES)
def test_a_region_overlaps_every_changed_file(changed):
    low, high = arrays(changed)
    files = file_table(len(changed), low=low.tolist(), high=high.tolist())
    assert Region.of(low, high).overlaps(files).all()


@given(BOXES, st.integers(0, 20), st.integers(0, 20))
def test_a_value_that_all_changed_files_have_is_in_the_region(changed, day, customer):
    low, high = arrays(changed)
    if ((low <= (day, customer)) & (high >= (day, customer))).all():
        region = Region.of(low, high)
        assert ((region.low <= (day, customer)) & (region.high >= (day, customer))).all()


@given(BOXES, BOXES, st.integers(0, 5))
def test_more_that_is_unknown_makes_a_region_no_smaller(changed, others, unknown):
    low, high = arrays(changed)
    files = file_table(len(others), low=arrays(others)[0].tolist(), high=arrays(others)[1].tolist())
    known = Region.of(low, high).overlaps(files)
    low, high = low.copy(), high.copy()
    low[unknown % len(low), 0] = high[unknown % len(low), 0] = np.nan
    assert (Region.of(low, high).overlaps(files) | ~known).all()


def test_a_file_without_statistics_may_be_read_by_every_statement():
    files = file_table(2, low=[[1.0, 1.0], [None, 1.0]], high=[[1.0, 1.0], [None, 1.0]])
    assert Region.of(*arrays([((9, 9), (1, 1))])).overlaps(files).tolist() == [False, True]


# --------------------------------------------------------------------------------------------------------------- tables


def test_the_newest_day_is_left_alone_and_no_other():
    merges = [statement(((29, 29), (0, 49))), statement(((29, 29), (50, 99)))]
    assert names(days(), merges) == ["f58", "f59"]


def test_a_condition_that_does_not_name_a_column_reads_all_its_values():
    """The first merge has changed one of the two files of the day, and the next one reads both."""
    assert names(days(), [statement(((29, 29), (0, 49)))]) == ["f58", "f59"]
    both = statement(((29, 29), (0, 49)), compared=("day", "customer"))
    assert names(days(), [both]) == ["f58"]


def test_changes_of_the_last_days_leave_these_days_alone():
    merges = [statement(((day, day), (0, 49))) for day in (27, 29)]
    assert names(days(), merges) == ["f54", "f55", "f56", "f57", "f58", "f59"]


def test_a_job_does_not_widen_the_region_of_another():
    merge, delete = statement(((29, 29), (0, 99))), statement(((0, 0), (0, 49)), operation="DELETE")
    assert names(days(), [merge, delete]) == ["f0", "f1", "f58", "f59"]


def test_of_changes_all_over_the_table_only_the_written_files_are_left_alone():
    merges = [statement(((day, day), (0, 99)), written=(f"f{2 * day}",)) for day in (0, 29)]
    assert names(days(), merges) == ["f0", "f58"]


def test_a_merge_without_a_comparison_reads_everything_and_its_changes_count():
    merges = [statement(((29, 29), (0, 99)), compared=()), statement(((29, 29), (0, 99)), compared=())]
    assert names(days(), merges) == ["f58", "f59"]


def test_a_small_table_is_left_alone_as_a_whole(monkeypatch):
    monkeypatch.setattr(module, "_SMALL_FILES", 1000)
    merges = [statement(((29, 29), (0, 99)), compared=())]
    assert len(names(days(), merges)) == 2 * DAYS


def test_partitions_that_were_changed_are_left_alone():
    partition = [f"p{number // 2}" for number in range(2 * DAYS)]
    files = days(partition=partition)
    merge = statement(((0, 29), (0, 49)), compared=("p",), partitions=("p29",))
    assert names(files, [merge], ("p",)) == ["f58", "f59"]
    # A job that does not name the partition has changed this one, and reads all of them.
    other = statement(((0, 29), (0, 49)), compared=("v",), partitions=("p29",))
    assert names(files, [other], ("p",)) == ["f58", "f59"]


def test_a_region_within_partitions():
    """Each statement changes the newest day of all partitions."""
    files = days(partition=[f"p{number % 2}" for number in range(2 * DAYS)])
    merge = statement(((29, 29), (0, 99)), compared=None, partitions=("p0", "p1"))
    assert names(files, [merge], ("p",)) == ["f58", "f59"]


def test_a_table_without_ranges_has_only_written_files():
    files = file_table(4)
    nothing = np.zeros((1, 0))
    merge = Statement(0, "MERGE", frozenset({"id"}), frozenset({""}), ("f1",), nothing, nothing)
    active = active_files(files, [merge], (), ())
    assert files.path[active].tolist() == ["f1"]


# ------------------------------------------------------------------------------------------------------------ conflicts


def test_only_partitions_keep_a_rewrite_and_a_statement_apart():
    of_partition, other = (statement(((0, 0), (0, 0)), compared=(column,)) for column in ("p", "id"))
    assert not conflicts_anywhere([of_partition], ("P",))
    assert conflicts_anywhere([of_partition, other], ("P",))
    assert conflicts_anywhere([of_partition], ())
    assert not conflicts_anywhere([], ())
