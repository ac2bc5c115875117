"""The planner of a run asks strategies, goes on with what they found, and looks again; without Spark."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from listed_tables import table_files, unindexed
from optimizer_fakes import input_file
from staging import settings_of

from catalog.errors import InvalidArgumentError
from procedures.groups.group import Concatenate, FileRun, Relayout, SkippedGroup
from procedures.groups.plan import Arrivals
from procedures.groups.strategy import Strategy
from procedures.loop import planner as planners
from procedures.loop.interfaces import PlanRequest
from procedures.loop.planner import TablePlanner
from procedures.process.application import Application, active
from procedures.selection import register_strategy


def relayout(name, size=10):
    return Relayout("One", 0, "R", (input_file(name, size),))


def concatenate(name):
    return Concatenate("One", 0, "R", (input_file(name, 10),), runs=(FileRun((name,)),))


class Scripted(Strategy):
    """Yields what it is told, look by look, and notes what it was asked with."""

    doc = "For tests."
    needs_index_columns = False

    def __init__(self, name, *looks):
        self.name = name
        self.looks, self.asked = list(looks), []

    def groups(self, table, settings):
        self.asked.append((table, settings))
        yield from self.looks.pop(0) if self.looks else ["nothing"]


@pytest.fixture
def planner_of(monkeypatch):
    """Makes a planner over strategies."""
    monkeypatch.setattr(planners, "described_jobs", lambda *_: nullcontext())
    snapshot = table_files([unindexed("a"), unindexed("b")]).snapshot

    def made(*strategies):
        for strategy in strategies:
            register_strategy(strategy)
        table = SimpleNamespace(snapshot=lambda: snapshot, spark=None, name="t")
        return TablePlanner(table, settings_of(strategy=",".join(s.name for s in strategies)))

    with active(Application()):
        yield made


def paths(plan):
    return [file.path for group in plan.groups for file in group.files]


def test_concatenated_groups_of_one_look_are_used_up_before_the_next_look(planner_of):
    one = Scripted("One", [concatenate("a"), concatenate("b"), "done"], [concatenate("c")])
    planner = planner_of(one)
    assert [paths(planner.plan(PlanRequest())) for _ in range(3)] == [["a"], ["b"], ["c"]]
    assert len(one.asked) == 2
    last = planner.plan(PlanRequest())
    assert (last.groups, last.notes) == ((), ("nothing",))


def test_after_rows_were_laid_out_anew_a_strategy_looks_again(planner_of):
    one = Scripted("One", [relayout("a"), relayout("b")], [relayout("c")])
    planner = planner_of(one)
    assert [paths(planner.plan(PlanRequest())) for _ in range(2)] == [["a"], ["c"]]
    assert len(one.asked) == 2


def test_after_a_conflict_a_strategy_looks_again_and_is_told_its_files(planner_of):
    one, two = Scripted("One", [concatenate("a"), concatenate("b")]), Scripted("Two")
    planner = planner_of(one, two)
    planner.plan(PlanRequest())
    planner.plan(PlanRequest(batch_bytes=5, failed={"One": frozenset({"a"})}))
    (first, _), (again, _) = one.asked
    assert (first.run.first, first.run.failed, first.run.is_contended) == (None, frozenset(), False)
    assert (again.run.first, again.run.failed, again.run.is_contended) == (first, {"a"}, True)
    # The other one is asked for the first time, whatever the run has done before.
    ((other, _),) = two.asked
    assert (other.run.first, other.run.failed, other.first) == (None, frozenset(), other)


def test_a_plan_ends_at_its_number_and_at_its_bytes_of_groups(planner_of):
    names = "abcd"
    assert len(planner_of(Scripted("One", [relayout(n) for n in names])).plan(PlanRequest(3)).groups) == 3
    by_bytes = planner_of(Scripted("One", [relayout(n) for n in names])).plan(PlanRequest(9, 20))
    assert paths(by_bytes) == ["a", "b"]


def test_the_first_strategy_with_a_group_wins_and_what_was_passed_over_is_told_once(planner_of):
    skipped = SkippedGroup("One", "TOO_SMALL", 1, 10, "why")
    one, two, three = Scripted("One", [skipped, skipped]), Scripted("Two", [relayout("a")]), Scripted("Three")
    plan = planner_of(one, two, three).plan(PlanRequest())
    assert (paths(plan), plan.skipped, plan.notes) == (["a"], (skipped,), ())
    assert three.asked == []


def test_a_strategy_that_is_left_out_is_not_asked(planner_of):
    one, two = Scripted("One", [concatenate("a"), concatenate("b")]), Scripted("Two", [relayout("c")])
    planner = planner_of(one, two)
    assert paths(planner.plan(PlanRequest())) == ["a"]
    assert paths(planner.plan(PlanRequest(left_out=frozenset({"One"})))) == ["c"]
    assert len(one.asked) == 1


def test_a_plan_names_the_strategy_that_was_asked(planner_of):
    planner = planner_of(Scripted("Nothing"), Scripted("Own", [concatenate("a"), concatenate("b")]))
    plans = [planner.plan(PlanRequest()) for _ in range(2)]
    assert [(plan.strategy, plan.groups[0].strategy) for plan in plans] == [("Own", "One")] * 2


def test_files_that_arrived_during_the_run_are_left(planner_of):
    late = Relayout("UnindexedFiles", 0, "UNINDEXED", (input_file("a", 10, 9),))
    plan = planner_of(Scripted("One", [late])).plan(PlanRequest(arrivals=Arrivals(5, 100)))
    assert (plan.groups, plan.arrived.reason) == ((), "ARRIVED_DURING_RUN")


def test_what_is_no_group_is_refused(planner_of):
    with pytest.raises(InvalidArgumentError, match="yields Relayout, Concatenate"):
        planner_of(Scripted("One", [{"files": 1}])).plan(PlanRequest())


def test_findings_that_last_are_asked_for_once(planner_of):
    """Until a conflict: then a group may have lost its files."""
    one = Scripted("One", [relayout("a"), relayout("b"), relayout("c")], [relayout("d")])
    one.findings_last = True
    planner = planner_of(one)
    paths = [planner.plan(PlanRequest(1, None)).groups[0].files[0].path for _ in range(2)]
    assert (paths, len(one.asked)) == (["a", "b"], 1)
    after_conflict = planner.plan(PlanRequest(1, None, batch_bytes=5))
    assert (after_conflict.groups[0].files[0].path, len(one.asked)) == ("d", 2)


def test_scans_are_read_only_where_they_are_recorded(planner_of, monkeypatch):
    asked = []
    monkeypatch.setattr(planners, "recorded_scans", lambda table, since: asked.append((table.name, since)))
    one = Scripted("One")
    planner = planner_of(one)
    planner.plan(PlanRequest(1, None))
    assert one.asked[-1][0].scans(7) is None
    planner._table.snapshot().settings["use.insights.consumption.enabled"] = "maybe"
    planner.plan(PlanRequest(1, None))
    assert one.asked[-1][0].scans(7) is None
    planner._table.snapshot().settings["use.insights.consumption.enabled"] = "true"
    planner.plan(PlanRequest(1, None))
    assert asked == []
    one.asked[-1][0].scans(7)
    assert asked == [("t", 7)]
