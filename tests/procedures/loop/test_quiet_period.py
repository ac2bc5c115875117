"""The quiet period of a run: the planner leaves files alone, and a commit waits for the end of a statement."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fake_clock import FakeClock
from listed_tables import table_files, unindexed
from optimizer_fakes import FakeOptimizer, committed, conflict, input_file, lost, outcome
from staging import settings_of

from catalog.errors import ConcurrentChangeError, InvalidArgumentError
from catalog.insights.recent_statements import Statement
from catalog.insights.statement_pace import Span
from procedures.declare.runs import Run
from procedures.groups.group import Concatenate, FileRun, Relayout, SkippedGroup
from procedures.groups.plan import CHANGED
from procedures.layout.step import Step
from procedures.loop import commit_gate
from procedures.loop import planner as planners
from procedures.loop import quiet_period as module
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimizer import MAX_CONFLICTS_IN_A_ROW
from procedures.loop.planner import TablePlanner
from procedures.loop.quiet_period import QuietPeriod
from procedures.loop.report import LEASE_HELD
from procedures.process.application import Application, active
from procedures.rewrite.results import RewriteContext
from procedures.selection import register_strategy
from procedures.service.execution import note_of, settled_version, totals_of
from procedures.service.schedule import Schedule

QUIET = 600_000
LEFT = SkippedGroup("", CHANGED, 2, 20, "statements")


def statement(*written, time=0, compared=("p",), span=None):
    nothing = np.zeros((1, 2)) * np.nan
    return Statement(time, "MERGE", frozenset(compared), frozenset({"none"}), written, nothing, nothing, span)


class Log:
    """Statements, as they are committed while a test goes on."""

    def __init__(self, monkeypatch):
        self.clock, self.statements, self.asked = FakeClock(), [], []
        # A table without ranges, in which a statement has only the files that it wrote.
        monkeypatch.setattr(module, "recent_statements", self.recent)
        monkeypatch.setattr(commit_gate, "StatementTail", lambda _: self)
        monkeypatch.setattr(planners, "described_jobs", lambda *_: nullcontext())
        listed = table_files([unindexed(name) for name in "abcd"]).snapshot
        # The list is kept, so that snapshots with fewer files need no log.
        self.snapshot = replace(listed, location="memory:/quiet", state=SimpleNamespace(files=None))
        self.snapshot.version_files.keep(listed.file_table)
        self.table = SimpleNamespace(snapshot=lambda: self.snapshot, spark=None, name="t")
        self.nexts, self.version = iter([]), 0

    def recent(self, _, columns, since):
        self.asked.append(since)
        assert len(columns) == 2
        return tuple(s for s in self.statements if s.time >= since)

    def new_spans(self):
        return next(self.nexts, [])

    def quiet(self, run=None):
        return QuietPeriod(self.table, QUIET, run, self.clock)

    def plan(self, **given):
        return TablePlanner(self.table, settings_of(**given), self.quiet()).plan(PlanRequest())


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr("procedures.groups.active_files._SMALL_FILES", 0)
    return Log(monkeypatch)


def paths(plan):
    return [file.path for group in plan.groups for file in group.files]


# ---------------------------------------------------------------------------------------------------------------- plans


def test_files_of_recent_statements_are_not_chosen_and_the_plan_says_so(log):
    log.statements = [statement("b", time=log.clock.now())]
    plan = log.plan()
    assert paths(plan) == ["a", "c", "d"]
    assert (plan.changed.reason, plan.changed.files, plan.changed.bytes) == ("CHANGED_RECENTLY", 1, 10)
    assert plan.changed.note.startswith("1 file is left: statements of the last 600 s ")


def test_after_the_quiet_period_they_are_chosen(log):
    log.statements = [statement("b", time=log.clock.now())]
    log.clock.go_on(QUIET + 1)
    plan = log.plan()
    assert (paths(plan), plan.changed) == (["a", "b", "c", "d"], None)


def test_what_a_strategy_has_found_before_a_statement_is_passed_over(log):
    class Early(planners.Strategy):
        name, doc, needs_index_columns = "Early", "For tests.", False

        def groups(self, table, settings):
            for name in "abc":
                yield Concatenate("Early", 0, "R", (input_file(name, 10),), runs=(FileRun((name,)),))

    with active(Application()):
        register_strategy(Early())
        planner = TablePlanner(log.table, settings_of(strategy="Early"), log.quiet())
        assert paths(planner.plan(PlanRequest())) == ["a"]
        log.statements = [statement("b", time=log.clock.now())]
        assert paths(planner.plan(PlanRequest())) == ["c"]


def leaving_files(**given):
    """The loop over two files, beside others that every plan leaves alone."""
    fake = FakeOptimizer(sizes=(10, 10), **given)
    plan = fake.table.plan
    fake.table.plan = lambda request: replace(plan(request), changed=LEFT)
    return fake


def test_a_report_names_the_files_once_and_the_table_is_not_settled():
    fake = leaving_files()
    report = fake.optimize()
    assert outcome(report) == [committed(1), committed(2), (3, "skipped", CHANGED)]
    assert (report[-1].strategy, report[-1].input_files, report[-1].input_bytes) == (None, 2, 20)
    assert settled_version(report, fake.run) is None
    assert note_of(report) == "CHANGED_RECENTLY (statements)"


def test_the_last_row_says_why_a_run_has_ended_early():
    fake = leaving_files()
    fake.table.during_rewrite = lambda _: fake.run.request_stop("CANCELLED", "by a test")
    assert outcome(fake.optimize()) == [(1, "skipped", CHANGED), committed(1), (1, "skipped", "CANCELLED")]

    limited = leaving_files(groups=1)
    assert outcome(limited.optimize()) == [(1, "skipped", CHANGED), committed(1), (1, "skipped", "LIMIT_REACHED")]

    losing = leaving_files()
    losing.table.during_rewrite = conflict
    report = losing.optimize()
    assert outcome(report)[-2:] == [(MAX_CONFLICTS_IN_A_ROW, "skipped", CHANGED), lost(MAX_CONFLICTS_IN_A_ROW)]
    assert totals_of(report).ended_by_conflict

    held = leaving_files()
    plan = held.table.plan

    def overtaken(request):
        held.lease.other = held.lease_of_another()
        return plan(request)

    held.table.plan = overtaken
    assert outcome(held.optimize())[-1] == (0, "skipped", LEASE_HELD)


# -------------------------------------------------------------------------------------------------------------- commits


class Rewrite:
    """A rewrite of file a that gets to its commit, which is version 7 unless it waits."""

    def __init__(self, log):
        self.log, self.steps = log, []
        self.run = Run("t", "file:/t", "automatic", {}, 0)
        group = Relayout("One", 0, "R", (input_file("a"),))
        self._context = log.quiet(self.run).guarded(group, RewriteContext(observe=self.steps.append))

    def commit(self):
        """How many looks at the log it has waited for."""
        begun = self.log.clock.now()
        for step in (Step.READ, Step.WRITE, Step.COMMIT):
            self._context.observe(step)
        assert self.steps == [Step.READ, Step.WRITE, Step.COMMIT]
        self.version = self._context.hold(7)
        assert self.run.current != "waiting for the end of a statement of another session"
        return (self.log.clock.now() - begun) / (commit_gate._LOOK_SECONDS * 1000)

    def again(self):
        """The version that the commit can be after its check for conflicts."""
        return self._context.hold(7)


def every_second(numbers, millis=400):
    """What the log says of statements that take so long."""
    return [[Span(1_000 * n, 1_000 * n + millis)] for n in numbers]


def test_a_commit_waits_for_the_next_statement(log):
    log.statements = [statement("b", time=log.clock.now())]
    # The first answer is about statements that were committed before the wait.
    log.nexts = iter([[None], [], [], [None]])
    log.version = 9
    rewrite = Rewrite(log)
    assert rewrite.commit() == 3
    assert rewrite.version == 10


def test_a_commit_waits_until_the_table_has_been_quiet(log):
    log.statements = [statement("b", time=log.clock.now() - 400_000)]
    rewrite = Rewrite(log)
    assert rewrite.commit() * commit_gate._LOOK_SECONDS == pytest.approx(200, abs=0.02)
    assert rewrite.version == 7


def test_a_commit_waits_for_one_quiet_period_if_the_clock_of_a_writer_is_ahead(log):
    log.statements = [statement("b", time=log.clock.now() + 3_600_000)]
    assert Rewrite(log).commit() * commit_gate._LOOK_SECONDS == pytest.approx(QUIET / 1000, abs=0.02)


def test_a_commit_waits_for_a_statement_with_a_pause_after_it(log):
    log.statements = [statement("b", time=log.clock.now(), span=Span(0, 400))]
    # The first wait ends with the next statement. The second one finds no other before it looks.
    log.nexts = iter([[], *every_second([1]), [], *every_second([2], 950), *every_second(range(3, 20))])
    # The pause of 50 ms after the slow one has to be more than five statements ago.
    assert Rewrite(log).commit() == 1 + 7


@pytest.mark.parametrize(("millis", "waits"), [(0, False), (540, False), (560, True)])
def test_a_commit_whose_check_used_up_the_pause_waits_for_another_one(log, millis, waits):
    log.statements = [statement("b", time=log.clock.now(), span=Span(0, 400))]
    log.nexts = iter([[], *every_second([1]), [], *every_second([2]), [], *every_second([3])])
    rewrite = Rewrite(log)
    assert rewrite.commit() == 1 + 1
    # Of a pause of 600 ms, 50 are for writing, and 5 had gone by when the statement was seen.
    log.clock.go_on(millis)
    rewrite.again()
    assert (len(list(log.nexts)) == 0) == waits


def test_a_commit_after_a_long_pause_waits_once(log):
    log.statements = [statement("b", time=log.clock.now(), span=Span(0, 400))]
    log.nexts = iter([[], [Span(3_000, 3_400)], AssertionError])
    assert Rewrite(log).commit() == 1


def test_a_look_that_takes_long_needs_a_longer_pause(log):
    log.statements = [statement("b", time=log.clock.now(), span=Span(0, 400))]
    answers = every_second(range(1, 30))

    def slow_look():
        log.clock.go_on(200 if len(answers) > 10 else 0)
        return answers.pop(0)

    log.new_spans = slow_look
    Rewrite(log).commit()
    assert len(answers) == 9


def test_statements_without_a_pause_end_the_wait_for_one(log):
    log.statements = [statement("b", time=log.clock.now(), span=Span(0, 400))]
    log.nexts = iter([[], *every_second(range(1, 1_000), 950)])
    with pytest.raises(ConcurrentChangeError, match="without a pause"):
        Rewrite(log).commit()


@pytest.mark.parametrize("reason", ["no statement", "partitions"])
def test_a_commit_waits_for_no_one(log, reason):
    log.statements = [] if reason == "no statement" else [statement("b", time=log.clock.now())]
    if reason == "partitions":
        log.snapshot = replace(log.snapshot, partition_columns=("p",))
        log.snapshot.version_files.keep(table_files([unindexed("a"), unindexed("b")]).snapshot.file_table)
    rewrite = Rewrite(log)
    assert rewrite.commit() == 0
    assert rewrite.version == 7


@pytest.mark.parametrize(("pause", "planned"), [(99, []), (100, ["a", "c", "d"])])
def test_nothing_is_planned_where_statements_leave_no_pause(log, pause, planned):
    spans = [Span((400 + pause) * n, (400 + pause) * n + 400) for n in range(5)]
    log.statements = [statement("b", time=log.clock.now(), span=span) for span in spans]
    plan = log.plan()
    assert paths(plan) == planned
    assert ("leave no pause" in plan.changed.note) == (not planned)


def test_a_pause_is_of_no_matter_to_statements_that_name_a_partition(log):
    log.statements = [statement("b", time=log.clock.now(), span=Span(n, n + 1)) for n in range(5)]
    log.snapshot = replace(log.snapshot, partition_columns=("p",))
    log.snapshot.version_files.keep(table_files([unindexed("a"), unindexed("b")]).snapshot.file_table)
    assert paths(log.plan()) == ["a"]


def test_a_group_near_a_new_statement_is_planned_again(log):
    log.statements = [statement("a", time=log.clock.now())]
    with pytest.raises(ConcurrentChangeError, match="while it was written"):
        Rewrite(log).commit()


def test_a_run_that_is_stopped_does_not_wait(log):
    log.statements = [statement("b", time=log.clock.now())]
    rewrite = Rewrite(log)
    rewrite.run.request_stop("CANCELLED", "cancelled")
    with pytest.raises(ConcurrentChangeError, match="asked to stop"):
        rewrite.commit()
    assert rewrite.run.current != "waiting for the end of a statement of another session"


# ------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(("text", "millis"), [(None, 0), ("0", 0), ("0 minutes", 0), ("90s", 90_000)])
def test_a_call_names_its_quiet_period(text, millis):
    assert settings_of(quiet_period=text).quiet_millis == millis


@pytest.mark.parametrize("given", [{"quiet_period": "soon"}, {"quiet_period": "5"}, {"quiet_period": "-1s"}])
def test_a_wrong_quiet_period_is_refused(given):
    with pytest.raises(InvalidArgumentError, match="a duration such as '10 minutes', or 0"):
        settings_of(**given)


def test_named_files_and_plans_are_rewritten_whatever_happens_near_them():
    with pytest.raises(InvalidArgumentError, match="nothing together with files"):
        settings_of(quiet_period="1 minute", files=["a"])
    with pytest.raises(InvalidArgumentError, match="nothing together with plan"):
        settings_of(quiet_period="1 minute", plan="0123456789ab")


AUTOMATIC = {"use.index.columns": "x", "use.optimization.autoOptimize.enabled": "true"}


@pytest.mark.parametrize(
    ("properties", "millis"),
    [
        (AUTOMATIC, 600_000),
        ({**AUTOMATIC, "use.optimization.quietPeriod": "2 minutes"}, 120_000),
        ({**AUTOMATIC, "use.optimization.quietPeriod": "0"}, 0),
        ({"use.clustering.enabled": "true"}, 600_000),
    ],
)
def test_automatic_runs_have_the_quiet_period_of_the_table(properties, millis):
    assert Schedule.of_table(properties).settings().quiet_millis == millis


def test_a_manual_trigger_has_none():
    assert Schedule.of_trigger({"use.optimization.type": "LeveledCompaction"}).settings().quiet_millis == 0
