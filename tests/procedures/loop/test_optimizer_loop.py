"""The loop of ``optimize`` over fakes: the way through, parallelism, limits and stops. No Spark, no file."""

import itertools
import os
import signal
import threading

import pytest
from optimizer_fakes import COMMITTED, STRATEGY, FakeOptimizer, committed, input_file, is_group, outcome
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.errors import UnknownNameError, UseError
from procedures.declare.runs import Run, Stop
from procedures.groups.group import Relayout, SkippedGroup
from procedures.groups.plan import Plan
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimizer import MAX_REWRITES_IN_A_RUN, Limits

TOO_SMALL = SkippedGroup("LeveledCompaction", "BYTES_PER_ITER_TOO_SMALL", 2, 100, "level 1 needs 100 bytes")


# ------------------------------------------------------------------------------------------------------ the way through


def test_groups_follow_each_other_until_no_files_are_left():
    fake = FakeOptimizer(sizes=(5, 6, 7))
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(2), committed(3)]
    assert [(r.strategy, r.input_files, r.input_bytes, r.rows, r.version) for r in report] == [
        (STRATEGY, 1, 5, 5, 8),
        (STRATEGY, 1, 6, 6, 9),
        (STRATEGY, 1, 7, 7, 10),
    ]
    assert fake.table.rewritten == [("f0",), ("f1",), ("f2",)]
    assert fake.table.events == [(COMMITTED, (path,), None) for path in ("f0", "f1", "f2")]
    assert (fake.run.committed, fake.run.committed_bytes) == (3, 18)


def test_the_order_of_what_a_run_does():
    fake = FakeOptimizer(sizes=(5,))
    fake.table.during_rewrite = lambda _: fake.steps.append("rewrite")
    fake.optimize()
    assert fake.steps == [
        *("look at the lease", "plan", "check_writable", "acquire", "renew", "reconcile"),
        *("show progress", "rewrite", "plan", "hide progress", "release"),
    ]


def test_a_run_is_listed_while_it_lasts():
    fake = FakeOptimizer(sizes=(5,))
    seen = []
    fake.table.during_plan = lambda _: seen.append((fake.runs.live(), fake.run.current))
    fake.table.during_rewrite = lambda _: seen.append((fake.runs.live(), fake.run.current))
    fake.optimize()
    assert seen == [([fake.run], note) for note in ("planning", "1 files", "planning")]
    assert fake.runs.live() == []


def test_nothing_to_do_says_why_and_takes_no_lease():
    fake = FakeOptimizer(sizes=())
    fake.table.notes = ("no unindexed file", "no level to compact")
    (row,) = fake.optimize()
    assert (row.iteration, row.state, row.reason, row.version) == (1, "skipped", "NOTHING_TO_DO", 7)
    assert row.message == "no unindexed file; no level to compact"
    assert fake.steps == ["look at the lease", "plan"]


def test_warnings_of_the_table_are_in_the_first_row():
    fake = FakeOptimizer(sizes=(5, 6))
    fake.table.warnings = ("use.index.cubeSize = 'x' is ignored",)
    first, second = fake.optimize()
    assert first.message == "1 files; use.index.cubeSize = 'x' is ignored"
    assert second.message == "1 files"


def test_skipped_groups_are_reported_once():
    fake = FakeOptimizer(sizes=(5, 6))
    fake.table.skipped = (TOO_SMALL,)
    report = fake.optimize()
    assert outcome(report) == [(1, "skipped", "BYTES_PER_ITER_TOO_SMALL"), committed(1), committed(2)]
    assert (report[0].strategy, report[0].input_files, report[0].input_bytes) == ("LeveledCompaction", 2, 100)


def test_a_skipped_group_alone_is_the_whole_report():
    fake = FakeOptimizer(sizes=())
    fake.table.skipped = (TOO_SMALL,)
    assert outcome(fake.optimize()) == [(1, "skipped", "BYTES_PER_ITER_TOO_SMALL")]


def test_a_dry_run_shows_the_groups_of_the_next_iteration_and_does_nothing():
    fake = FakeOptimizer(dry_run=True, parallelism=3)
    fake.lease.other = fake.lease_of_another()
    report = fake.optimize()
    assert outcome(report) == [(1, "planned", "UNINDEXED")] * 3
    assert [row.message for row in report] == ["1 files: f0", "1 files: f1", "1 files: f2"]
    assert {row.version for row in report} == {7}
    assert fake.steps == ["plan"]
    assert (fake.table.rewritten, fake.table.events) == ([], [])


def keeping_outputs(fake):
    """A rewrite whose output later plans can choose."""
    rewrite = fake.table.rewrite

    def keeping(group):
        result = rewrite(group)
        fake.table.files[result.paths[0]] = 5
        return result

    return keeping


def test_a_strategy_that_chooses_its_own_output_is_ended():
    # The limit ends the test, should the loop not end by itself.
    fake = FakeOptimizer(sizes=(5,), groups=9)

    def everything(request):
        files = tuple(input_file(path) for path in fake.table.files)
        return Plan(fake.table.version, (Relayout("Everything", 0, "ALL", files, "all files"),))

    fake.table.plan, fake.table.rewrite = everything, keeping_outputs(fake)
    report = fake.optimize()
    assert outcome(report) == [(1, COMMITTED, "ALL"), (2, "skipped", "NO_PROGRESS")]
    assert report[-1].message == "Everything chose files that the run has written"
    assert report[-1].version == 8


def test_strategies_that_take_turns_at_the_same_rows_are_ended():
    fake = FakeOptimizer(sizes=(5, 5), groups=99)
    turns = itertools.cycle(("Rows", "Columns"))

    def by_turns(request):
        files = tuple(input_file(path) for path in fake.table.files)
        return Plan(fake.table.version, (Relayout(next(turns), 0, "ALL", files, "all files"),))

    fake.table.plan, fake.table.rewrite = by_turns, keeping_outputs(fake)
    report = fake.optimize()
    assert [row.state for row in report] == [COMMITTED] * MAX_REWRITES_IN_A_RUN + ["skipped"]
    assert report[-1].reason == "NO_PROGRESS"


@pytest.mark.parametrize(
    ("costs", "commits"),
    [
        # Merges undo each other's work; the first two plans are for files of others.
        ((9.4, 2.5, 4.2, 2.6, 7.3, 2.5), 4),
        # Reads get cheaper, if slowly.
        ((9.4, 2.5, 2.4, 2.45, 2.3, 2.35, 2.32, 2.2), 8),
    ],
)
def test_merges_that_do_not_make_reads_cheaper_are_ended(costs, commits):
    fake = FakeOptimizer(sizes=(5, 5), groups=99)
    plans = iter([*enumerate(costs)])

    def one_file(request):
        number, cost = next(plans, (0, None))
        if cost is None:
            return Plan(fake.table.version, ())
        path = next(iter(fake.table.files))
        return Plan(fake.table.version, (Relayout("Runs", 0, f"{number}", (input_file(path),), read_cost=(cost, 1.1)),))

    fake.table.plan, fake.table.rewrite = one_file, keeping_outputs(fake)
    report = fake.optimize()
    assert sum(row.state == COMMITTED for row in report) == commits
    assert (report[-1].reason == "NO_PROGRESS") == (commits < len(costs))


# ---------------------------------------------------------------------------------------------------------- parallelism


def test_groups_of_an_iteration_run_side_by_side():
    fake = FakeOptimizer(parallelism=2, groups=3)
    together, threads = threading.Barrier(2, timeout=60), set()

    def meet(group):
        threads.add(threading.current_thread().name)
        if is_group(group, "f0") or is_group(group, "f1"):
            together.wait()

    fake.table.during_rewrite = meet
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(1), committed(2), (2, "skipped", "LIMIT_REACHED")]
    assert threads == fake.threads.prepared == {"group-0", "group-1"}
    assert [request.most_groups for request in fake.table.requests] == [2, 1]
    assert fake.progress.planned_bytes == [20, 10]
    assert fake.progress.notes == ["1 files; 1 files", "1 files"]
    assert fake.progress.done_bytes == [10, 10, 10]


def test_rows_keep_the_order_of_the_plan_whichever_group_ends_first():
    fake = FakeOptimizer(sizes=(5, 6), parallelism=2)
    second_ended = threading.Event()
    fake.table.during_rewrite = lambda group: second_ended.wait(60) if is_group(group, "f0") else second_ended.set()
    assert [row.input_bytes for row in fake.optimize()] == [5, 6]


def test_a_thread_that_cannot_be_prepared_is_a_failed_group():
    fake = FakeOptimizer(sizes=(5,))

    def broken():
        raise OSError("no JVM")

    fake.threads.prepare = broken
    with pytest.raises(OSError, match="no JVM"):
        fake.optimize()
    assert fake.steps[-1] == "release"


def test_the_time_of_a_group_is_that_of_the_clock():
    fake = FakeOptimizer(sizes=(5,))
    fake.table.during_rewrite = lambda _: fake.clock.go_on(1234)
    (row,) = fake.optimize()
    assert row.duration_ms == pytest.approx(1234, abs=1)


# --------------------------------------------------------------------------------------------------------------- limits


def test_the_limit_of_iterations_counts_groups():
    fake = FakeOptimizer(groups=2)
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(2), (2, "skipped", "LIMIT_REACHED")]
    assert report[-1].message == "max_iterations = 2 was reached; more may remain"
    assert len(fake.table.requests) == 2


def test_the_limit_of_bytes():
    fake = FakeOptimizer(bytes=15, parallelism=4)
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(1), (1, "skipped", "LIMIT_REACHED")]
    assert report[-1].message == "max_bytes = 15 was reached after 20 bytes; more may remain"
    assert fake.table.requests == [PlanRequest(4, 15)]


def test_the_bytes_that_are_left_are_planned_for():
    fake = FakeOptimizer(bytes=25)
    fake.optimize()
    assert [request.most_bytes for request in fake.table.requests] == [25, 15, 5]


def test_the_limit_of_time():
    fake = FakeOptimizer(seconds=1.5)
    fake.table.during_rewrite = lambda _: fake.clock.go_on(800)
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(2), (2, "skipped", "LIMIT_REACHED")]
    assert report[-1].message == "max_duration = 1.5 seconds was reached; more may remain"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), None),
        (Limits(groups=3, bytes=101, seconds=2.001), None),
        (Limits(groups=2), "max_iterations = 2"),
        (Limits(bytes=100), "max_bytes = 100"),
        (Limits(seconds=2), "max_duration = 2 seconds"),
        (Limits(groups=1, bytes=1, seconds=1), "max_iterations = 1"),
    ],
)
def test_limits_begin_where_they_say(limits, expected):
    run = Run("t", "/t", "call", {}, 1000, committed=2, committed_bytes=100)
    stop = limits.reached(run, 3000)
    assert stop is None if expected is None else (stop.code == "LIMIT_REACHED" and stop.message.startswith(expected))


def test_a_limit_never_asks_for_no_group():
    run = Run("t", "/t", "call", {}, 0, committed=5)
    assert Limits(groups=5, parallelism=3).next_groups(run) == 1
    assert Limits(groups=7, parallelism=3).next_groups(run) == 2
    assert Limits(parallelism=3).next_groups(run) == 3


# ---------------------------------------------------------------------------------------------------------------- stops


def test_cancelling_ends_at_the_boundary_between_groups():
    fake = FakeOptimizer()
    fake.table.during_rewrite = lambda _: fake.runs.cancel(fake.run.run_id)
    report = fake.optimize()
    assert outcome(report) == [committed(1), (1, "skipped", "CANCELLED")]
    note = f"run {fake.run.run_id} was cancelled; the groups above are committed, more may remain"
    assert (report[-1].message, report[-1].version) == (note, None)
    assert fake.steps[-1] == "release"
    with pytest.raises(UnknownNameError) as unknown:
        fake.runs.cancel(fake.run.run_id)
    assert unknown.value.code == "USE_UNKNOWN_RUN"


def test_groups_side_by_side_all_end_when_the_run_is_cancelled():
    fake = FakeOptimizer(parallelism=2)
    fake.table.during_rewrite = lambda _: fake.runs.cancel(fake.run.run_id)
    assert outcome(fake.optimize()) == [committed(1), committed(1), (1, "skipped", "CANCELLED")]


def test_the_first_reason_to_stop_stays():
    fake = FakeOptimizer()

    def stop(_):
        fake.run.request_stop("YIELDED", "other tables wait for their turn")
        fake.run.request_stop("CANCELLED", "later")
        fake.interrupted = True

    fake.table.during_rewrite = stop
    assert outcome(fake.optimize()) == [committed(1), (1, "skipped", "YIELDED")]
    assert fake.run.stop_reason == Stop("YIELDED", "other tables wait for their turn")


def test_the_first_ctrl_c_ends_at_the_boundary_and_the_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    fake = FakeOptimizer()
    fake.table.during_rewrite = lambda _: os.kill(os.getpid(), signal.SIGINT)
    report = fake.optimize()
    assert outcome(report) == [committed(1), (1, "skipped", "INTERRUPTED")]
    assert report[-1].message == "interrupted; the groups above are committed, more may remain"
    assert signal.getsignal(signal.SIGINT) is before


def test_the_handler_of_ctrl_c_is_put_back_by_a_run_without_one():
    before, during = signal.getsignal(signal.SIGINT), []
    fake = FakeOptimizer(sizes=(5,))
    fake.table.during_plan = lambda _: during.append(signal.getsignal(signal.SIGINT))
    fake.optimize()
    assert before not in during
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ctrl_c_does_what_it_did_before():
    fake = FakeOptimizer(sizes=(5,))
    seen, inside = [], []

    def before(*_):
        seen.append("before")

    original = signal.signal(signal.SIGINT, before)
    try:

        def both(_):
            signal.raise_signal(signal.SIGINT)
            inside.append(list(seen))
            signal.raise_signal(signal.SIGINT)

        # In the main thread, where signals are handled.
        fake.table.during_plan = both
        fake.optimize()
        assert (inside[0], signal.getsignal(signal.SIGINT)) == ([], before)
    finally:
        signal.signal(signal.SIGINT, original)
    assert seen[:1] == ["before"]
    assert fake.run.stop_reason.code == "INTERRUPTED"


def test_an_interrupted_caller_lets_the_group_end():
    fake = FakeOptimizer()

    def interrupt(_):
        fake.interrupted = True
        # The loop notices it while the group is at work.
        assert fake.run._stop.wait(10)

    fake.table.during_rewrite = interrupt
    assert outcome(fake.optimize()) == [committed(1), (1, "skipped", "INTERRUPTED")]


@pytest.mark.parametrize("error", [PySparkException("job cancelled"), Py4JError("job cancelled")])
def test_a_plan_whose_jobs_were_cancelled_ends_the_run(error):
    fake = FakeOptimizer()

    def cancelled(_):
        if fake.run.committed:
            fake.interrupted = True
            raise error

    fake.table.during_plan = cancelled
    assert outcome(fake.optimize()) == [committed(1), (2, "skipped", "INTERRUPTED")]


def test_a_plan_that_fails_without_an_interrupt_is_an_error():
    fake = FakeOptimizer()

    def fail(_):
        raise PySparkException("broken")

    fake.table.during_plan = fail
    with pytest.raises(PySparkException, match="broken"):
        fake.optimize()
    assert fake.runs.live() == []
    assert "acquire" not in fake.steps


def test_errors_of_the_settings_are_raised_before_anything_is_touched():
    fake = FakeOptimizer()

    def refuse(_):
        raise UseError("no such revision")

    fake.table.during_plan = refuse
    with pytest.raises(UseError, match="no such revision"):
        fake.optimize()
    assert fake.steps == ["look at the lease", "plan"]


def test_a_stop_requested_before_the_run_lets_one_iteration_through():
    fake = FakeOptimizer()
    fake.run.request_stop("SERVICE_STOPPED", "the optimization service was stopped")
    assert outcome(fake.optimize()) == [committed(1), (1, "skipped", "SERVICE_STOPPED")]
