"""The loop of ``optimize`` over fakes while other writers append: what a run leaves to the next one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimizer_fakes import FakeOptimizer, committed, conflict, is_group, lost, outcome

from procedures.service.execution import is_complete, settled_version


def test_files_that_arrive_during_a_run_are_left_to_the_next():
    """They hold fewer bytes than the run has indexed, so that another pass is not worth its cost."""
    fake = FakeOptimizer(sizes=(10, 10))
    fake.table.batch_bytes = 100
    fake.table.during_rewrite = lambda _: (fake.clock.go_on(1000), fake.table.append("late", 19))
    first = fake.optimize()
    assert outcome(first) == [committed(1), (2, "skipped", "ARRIVED_DURING_RUN")]
    assert (first[1].input_files, first[1].input_bytes, first[1].version) == (1, 19, 8)
    assert list(fake.table.files) == ["late"]


@pytest.mark.parametrize("ahead", [-3_600_000, 3_600_000])
def test_the_clock_of_the_storage_tells_what_was_there(ahead):
    """Files have the times of the storage, whose clock may differ from that of the optimizer's host by an hour."""
    fake = FakeOptimizer(sizes=())
    fake.table.storage_ahead = ahead
    for number in range(3):
        fake.table.append(f"early {number}", 10)
    fake.table.during_rewrite = lambda group: (
        is_group(group, "early 2")
        and (
            fake.clock.go_on(1000),
            fake.table.append("late", 5),
        )
    )
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(2), committed(3), (4, "skipped", "ARRIVED_DURING_RUN")]
    assert list(fake.table.files) == ["late"]


def test_files_that_arrive_are_worth_a_pass_when_they_double_what_was_indexed():
    fake = FakeOptimizer(sizes=(10, 10))
    fake.table.batch_bytes = 100
    sizes = iter([20, 39, 1])
    fake.table.during_rewrite = lambda _: (
        fake.clock.go_on(1000),
        fake.table.append(f"at {fake.clock.now()}", next(sizes)),
    )
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(2), (3, "skipped", "ARRIVED_DURING_RUN")]
    assert [row.input_bytes for row in report] == [20, 20, 39]


def test_files_that_arrive_join_a_group_of_older_ones():
    """A group is left only if all of its files arrived later: what was there when the run began is always indexed."""
    fake = FakeOptimizer(sizes=(10, 10, 10))
    fake.table.batch_bytes = 15
    fake.table.during_rewrite = lambda group: (
        fake.table.append(f"after {group.files[0].path}", 1) or fake.clock.go_on(1)
    )
    report = fake.optimize()
    assert [row.state for row in report if row.input_files > 1][:2] == ["committed", "committed"]
    assert not {"f0", "f1", "f2"} & set(fake.table.files)


def test_rows_of_a_lost_group_are_indexed_in_the_same_run():
    """The delete that made the group lose has written its rows to a new file, which no append has made."""
    fake = FakeOptimizer(sizes=(10, 10, 10))

    def delete(group):
        if is_group(group, "f1"):
            fake.clock.go_on(1000)
            del fake.table.files["f1"]
            fake.table.append("rest of f1", 5)
            conflict()

    fake.table.during_rewrite = delete
    report = fake.optimize()
    assert outcome(report) == [committed(1), lost(2), committed(3), committed(4)]
    assert not fake.table.files


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(1, 200), st.integers(1, 60), st.integers(1, 100)
)
def test_a_run_under_constant_appends_ends(sizes, batch_bytes, appended, size):
    """Whatever arrives in each pass: every file of the beginning is indexed, and the passes over new ones are few."""
    fake = FakeOptimizer(sizes=sizes)
    fake.table.batch_bytes = batch_bytes

    def arrive(_):
        fake.clock.go_on(1)
        for _ in range(appended):
            fake.table.append(f"n{len(fake.table.times)}", size)

    fake.table.during_rewrite = arrive
    report = fake.optimize()
    assert not [path for path in fake.table.files if path.startswith("f")]
    of_old = sum(1 for paths in fake.table.rewritten if any(path.startswith("f") for path in paths))
    # No pass takes more than a batch and the file that crosses it.
    most = batch_bytes + size
    assert len(fake.table.rewritten) - of_old <= most.bit_length() + 1
    assert report[-1].reason == "ARRIVED_DURING_RUN"


def test_a_table_with_files_left_is_not_settled():
    """The service looks at it again at the next interval, although nobody commits in between."""
    fake = FakeOptimizer(sizes=(10,))
    report = fake.optimize()
    assert (settled_version(report, fake.run), is_complete(report, fake.run)) == (8, True)
    fake = FakeOptimizer(sizes=(10,))
    fake.table.during_rewrite = lambda _: fake.clock.go_on(1) or fake.table.append("late", 5)
    report = fake.optimize()
    assert (settled_version(report, fake.run), is_complete(report, fake.run)) == (None, True)
