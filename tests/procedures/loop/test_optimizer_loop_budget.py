"""The loop asks a budget for the bytes of each group, before the group begins."""

from dataclasses import replace

from optimizer_fakes import STRATEGY, FakeOptimizer, committed, input_file, outcome

from catalog.state.fleet_ledger import TOO_LARGE
from procedures.declare.runs import Stop
from procedures.groups.group import Relayout
from procedures.service.execution import is_complete, note_of, settled_version


class Budget:
    """Allows groups as long as their bytes fit."""

    def __init__(self, left):
        self.left = left
        self.asked = []

    def __call__(self, size):
        self.asked.append(size)
        if size > self.left:
            return Stop("BUDGET_USED_UP", "nothing is left")
        self.left -= size
        return None


def _optimizer(left, *sizes, **limits):
    fake = FakeOptimizer(sizes, **limits)
    fake.spend = Budget(left)
    return fake


def test_a_run_ends_when_the_budget_is_used_up():
    fake = _optimizer(25, 10, 10, 10)
    assert outcome(fake.optimize()) == [committed(1), committed(2), (3, "skipped", "BUDGET_USED_UP")]
    assert fake.table.rewritten == [("f0",), ("f1",)]


def test_a_table_whose_budget_is_used_up_is_not_settled():
    """The groups that were committed before do not hide that more are left."""
    fake = _optimizer(25, 10, 10, 10)
    report = fake.optimize()
    assert (settled_version(report, fake.run), is_complete(report, fake.run)) == (None, False)


def test_only_groups_that_the_budget_pays_for_are_rewritten():
    fake = _optimizer(30, 20, 15, 10, parallelism=3)
    report = outcome(fake.optimize())
    assert sorted(fake.table.rewritten) == [("f0",), ("f2",)]
    assert report[-1][1:] == ("skipped", "BUDGET_USED_UP")


def test_a_dry_run_spends_nothing():
    fake = _optimizer(30, 20, dry_run=True)
    fake.optimize()
    assert fake.spend.asked == []


def test_nothing_is_spent_while_another_run_holds_the_lease():
    fake = _optimizer(30, 20)
    fake.lease.other = fake.lease_of_another()
    fake.optimize()
    assert fake.spend.asked == []


def test_a_strategy_whose_group_no_budget_pays_for_leaves_the_others_their_turn():
    fake = _optimizer(25, 40)
    fake.spend = lambda size: Stop(TOO_LARGE, "a group of 40 bytes is larger") if size > 25 else None
    plan_of_first = fake.table.plan

    def plan(request):
        plan = plan_of_first(request)
        if STRATEGY not in request.left_out or "other" in {path for paths in fake.table.rewritten for path in paths}:
            return plan
        fake.table.files["other"] = 10
        return replace(plan, groups=(Relayout("Other", 0, "OTHER", (input_file("other"),), "1 file"),))

    fake.table.plan = plan
    report = fake.optimize()
    assert [(row.strategy, row.state, row.reason) for row in report] == [
        (STRATEGY, "skipped", TOO_LARGE),
        ("Other", "committed", "OTHER"),
    ]
    assert fake.table.rewritten == [("other",)]
    # It is not done, and says so.
    assert not is_complete(report, fake.run)
    assert f"{STRATEGY}: {TOO_LARGE}" in note_of(report)


def test_a_strategy_that_yields_groups_of_another_one_is_left_out_by_its_own_name():
    fake = _optimizer(25, 40)
    fake.spend = lambda size: Stop(TOO_LARGE, "a group of 40 bytes is larger")
    plan_of_strategy = fake.table.plan

    def plan(request):
        assert len(fake.table.requests) < 3, "the loop plans the same group for ever"
        plan = plan_of_strategy(request)
        return replace(plan, groups=tuple(replace(group, strategy="Inherited") for group in plan.groups))

    fake.table.plan = plan
    assert outcome(fake.optimize()) == [(1, "skipped", TOO_LARGE)]
    assert [request.left_out for request in fake.table.requests] == [frozenset(), {STRATEGY}]
