"""Turns that an owner asks for whatever reads save: rows are compared by a primary key, within a budget of bytes."""

from dataclasses import replace

import pytest
from service_fakes import MINUTE, fleet, ran, the_automation, ticks

from catalog.errors import ConcurrentChangeError
from catalog.properties.fleet_properties import Pool
from procedures.process.application import application
from procedures.process.notifications import BUDGET_USED_UP
from procedures.process.running_services import CatalogChange
from procedures.service.execution import RunOutcome
from procedures.service.schedule import Schedule
from procedures.service.service_metrics import RunTotals

KEPT_LATEST = {
    "use.compaction.primaryKey": "id",
    "use.compaction.orderBy": "at",
    "use.compaction.interval": "1 day",
    "use.optimization.autoOptimize.enabled": "true",
}
LATEST = "LatestRowCompaction"


def _keyed(offer, budget=1000, **other_offers):
    """A fleet with the table ``keyed``, of which only the latest row of each key stays."""
    fake = fleet({"keyed": offer, **other_offers}, budget)
    fake.tables.put("spark_catalog.shop.keyed", KEPT_LATEST)
    planned, is_planned = [], fake.engine.appraise

    def appraise(run, schedule, pool, group_bytes):
        planned.append(schedule.strategies)
        return is_planned(run, schedule, pool, group_bytes)

    fake.engine.appraise = appraise
    return fake, planned


def _hours(fake, hours, minutes=60):
    """Lets so many hours pass, with an append every few minutes."""
    for _ in range(hours * 60 // minutes):
        fake.tables.commit("spark_catalog.shop.keyed")
        fake.tick(minutes * MINUTE)
        fake.tick(1)
        fake.tick(1)


def _compared(fake):
    return [s for table, s, _ in fake.engine.runs if table.endswith("keyed") and LATEST in s]


@pytest.mark.parametrize("offer", [(0, 40), (90, 40), (0, 0)])
def test_keys_are_compared_once_for_each_pace_whatever_reads_save(offer):
    fake, planned = _keyed(offer)
    _hours(fake, 72)
    assert 3 <= len(_compared(fake)) <= 4
    assert not [strategies for strategies in planned if LATEST in strategies]
    # The other strategies have their turns as if there were no key.
    others = [s for table, s, _ in fake.engine.runs if table.endswith("keyed") and LATEST not in s]
    assert bool(others) == (offer == (90, 40))


def test_a_key_that_is_listed_without_a_pace_is_compared_each_hour():
    fake, _ = _keyed((0, 40))
    listed = {"use.optimization.type": f"UnindexedFiles,{LATEST}", "use.optimization.primary-key": "id"}
    fake.tables.put("spark_catalog.shop.keyed", {**listed, "use.optimization.order-by": "at"})
    _hours(fake, 24, minutes=10)
    assert 18 <= len(_compared(fake)) <= 24


def test_each_comparison_by_a_key_waits_for_the_trigger_if_there_are_no_other_strategies():
    fake, _ = _keyed((0, 40))
    listed = {"use.optimization.type": LATEST, "use.optimization.primary-key": "id", "use.optimization.order-by": "at"}
    fake.tables.put("spark_catalog.shop.keyed", {**listed, "use.optimization.trigger.commits": "3"})
    fake.engine.commits_of_others = 3
    _hours(fake, 4)
    compared = len(_compared(fake))
    assert compared
    fake.engine.commits_of_others = 2
    _hours(fake, 8)
    assert len(_compared(fake)) == compared


def test_keys_are_not_compared_while_the_budget_is_used_up():
    fake, _ = _keyed((0, 40), budget=100, ahead=(9000, 90))
    fake.engine.is_suspended.add("file:/spark_catalog.shop.keyed")
    ticks(fake)
    assert ran(fake) == ["ahead"]
    fake.engine.is_suspended.clear()
    fake.engine.offers["spark_catalog.shop.keyed"] = (0, 10)
    _hours(fake, 23)
    assert not _compared(fake)
    assert "BUDGET_USED_UP" in the_automation("spark_catalog.shop.keyed").note
    fake.engine.offers["spark_catalog.shop.ahead"] = (0, 0)
    _hours(fake, 5)
    assert len(_compared(fake)) == 1


def test_a_budget_too_small_for_a_key_leaves_the_other_strategies_their_turn():
    fake, _ = _keyed((90, 140), budget=100)
    for _ in range(6):
        fake.tick(1)
    assert [s for _, s, _ in fake.engine.runs] == [(LATEST,)]
    assert "GROUP_LARGER_THAN_BUDGET" in the_automation("spark_catalog.shop.keyed").note
    fake.engine.offers["spark_catalog.shop.keyed"] = (90, 40)
    for _ in range(3):
        fake.tick(10 * MINUTE)
    assert LATEST not in fake.engine.runs[-1][1]
    assert len(_compared(fake)) == 1


def test_a_key_that_cannot_be_compared_holds_up_no_other_strategy():
    fake, _ = _keyed((90, 40))
    run = fake.engine.run

    def failing(its_run, schedule, pool, turn):
        if schedule.strategies == (LATEST,):
            raise OSError("the order has nulls")
        return run(its_run, schedule, pool, turn)

    fake.engine.run = failing
    _hours(fake, 1, minutes=10)
    assert LATEST not in fake.engine.runs[-1][1]
    assert "the order has nulls" in the_automation("spark_catalog.shop.keyed").last_error


def _failing(fake, error):
    """Lets comparisons fail, and returns the times at which they began."""
    run, began = fake.engine.run, []

    def failing(its_run, schedule, pool, turn):
        if schedule.strategies == (LATEST,):
            began.append(fake.clock.now())
            raise error
        return run(its_run, schedule, pool, turn)

    fake.engine.run = failing
    return began


def test_comparisons_that_fail_are_tried_less_and_less_often():
    fake, _ = _keyed((90, 40))
    fake.tables.put("spark_catalog.shop.keyed", {**KEPT_LATEST, "use.compaction.interval": "10 minutes"})
    began = _failing(fake, OSError("the order has nulls"))
    _hours(fake, 36, minutes=10)
    assert 4 <= len(began) <= 10
    assert "QUARANTINED" in the_automation("spark_catalog.shop.keyed").note
    assert [s for table, s, _ in fake.engine.runs if LATEST not in s]


def test_a_comparison_that_loses_to_writers_leaves_the_others_their_turn():
    fake, _ = _keyed((90, 40))
    began = _failing(fake, ConcurrentChangeError("another writer was faster"))
    _hours(fake, 24, minutes=10)
    assert 4 <= len(began) <= 9
    assert [s for table, s, _ in fake.engine.runs if LATEST not in s]


def test_a_comparison_behind_the_lease_of_another_run_is_tried_again_soon():
    fake, _ = _keyed((90, 40))
    run, began = fake.engine.run, []

    def held(its_run, schedule, pool, turn):
        if schedule.strategies == (LATEST,):
            began.append(fake.clock.now())
            return RunOutcome(None, totals=RunTotals(lease_held=True))
        return run(its_run, schedule, pool, turn)

    fake.engine.run = held
    _hours(fake, 1, minutes=10)
    assert len(began) >= 5


def test_comparisons_that_are_stopped_do_not_count_as_failures():
    fake, _ = _keyed((90, 40))
    run, began = fake.engine.run, []

    def stopped(its_run, schedule, pool, turn):
        if schedule.strategies == (LATEST,):
            began.append(fake.clock.now())
            its_run.request_stop("YIELDED", "queries wait for cores")
            return RunOutcome(None)
        return run(its_run, schedule, pool, turn)

    fake.engine.run = stopped
    _hours(fake, 12, minutes=10)
    assert len(began) >= 12
    assert "QUARANTINED" not in (the_automation("spark_catalog.shop.keyed").note or "")
    # The others are not kept waiting by a comparison that never ends.
    assert [s for table, s, _ in fake.engine.runs if LATEST not in s]


def _stepwise(fake, *outcomes):
    """Lets comparisons rewrite 10 bytes with these outcomes, and then with the last one; returns when they began."""
    run, began, left = fake.engine.run, [], list(outcomes)

    def one_group(its_run, schedule, pool, turn):
        if schedule.strategies != (LATEST,):
            return run(its_run, schedule, pool, turn)
        began.append(fake.clock.now())
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        its_run.committed_bytes += 10
        return outcome

    fake.engine.run = one_group
    return began


def _triggered(offer, *outcomes):
    """A table whose trigger was reached, and whose comparisons have these outcomes; and when they began."""
    fake, _ = _keyed(offer)
    properties = {**KEPT_LATEST, "use.compaction.interval": "1 hour", "use.optimization.trigger.commits": "3"}
    fake.tables.put("spark_catalog.shop.keyed", properties)
    fake.engine.commits_of_others = 3
    began = _stepwise(fake, *outcomes)
    fake.tables.commit("spark_catalog.shop.keyed")
    return fake, began


def _comparison(fake):
    """Lets a comparison begin, and returns what is left of it."""
    fake.threads.at_once = False
    while True:
        ticks(fake, 1)
        work = fake.threads.waiting.pop()
        if work.func.__name__ != "_appraise":
            fake.threads.at_once = True
            return work
        work()


def _without_commits(fake, hours):
    fake.engine.commits_of_others = 0
    for _ in range(hours * 6):
        fake.tick(10 * MINUTE)
        fake.tick(1)


def test_what_a_comparison_has_left_needs_no_trigger_and_no_commit():
    fake, began = _triggered((0, 0), RunOutcome(None), RunOutcome(None), RunOutcome(1))
    ticks(fake)
    assert len(began) == 1
    _without_commits(fake, 12)
    assert len(began) == 3


def test_a_comparison_goes_on_after_a_suspension():
    fake, began = _triggered((0, 40), RunOutcome(None), RunOutcome(1))
    rest_of_run = _comparison(fake)
    fake.engine.is_suspended.add("file:/spark_catalog.shop.keyed")
    fake.service.notify(CatalogChange("suspended", "spark_catalog.shop.keyed", "file:/spark_catalog.shop.keyed"))
    fake.tick()
    rest_of_run()
    assert the_automation("spark_catalog.shop.keyed").state == "suspended"
    fake.engine.is_suspended.clear()
    fake.service.notify(CatalogChange("resumed", "spark_catalog.shop.keyed", "file:/spark_catalog.shop.keyed"))
    _without_commits(fake, 3)
    assert len(began) == 2


def test_a_comparison_by_a_former_order_says_nothing_of_the_new_one():
    fake, _ = _keyed((90, 40))
    run, began = fake.engine.run, _failing(fake, OSError("the order has nulls"))
    rest_of_run = _comparison(fake)
    fake.tables.put("spark_catalog.shop.keyed", {**KEPT_LATEST, "use.compaction.orderBy": "changed_at"})
    fake.tables.commit("spark_catalog.shop.keyed")
    fake.tick()
    rest_of_run()
    assert began
    assert the_automation("spark_catalog.shop.keyed").last_error is None
    fake.engine.run = run
    ticks(fake)
    assert len(_compared(fake)) == 1


def test_failures_of_comparisons_end_with_the_budget():
    fake, _ = _keyed((90, 40))
    _failing(fake, OSError("the order has nulls"))
    ticks(fake)
    assert "the order has nulls" in the_automation("spark_catalog.shop.keyed").last_error
    fake.tables.of_database = {key: value for key, value in fake.tables.of_database.items() if "maxBytes" not in key}
    ticks(fake)
    assert the_automation("spark_catalog.shop.keyed").last_error is None


def test_a_comparison_waits_for_its_trigger_while_the_rest_of_others_waits_for_readers():
    fake, _ = _keyed((1, 40))
    fake.tables.put("spark_catalog.shop.keyed", {**KEPT_LATEST, "use.optimization.trigger.commits": "3"})
    fake.engine.commits_of_others = 3
    _hours(fake, 2)
    assert len(_compared(fake)) == 1
    fake.engine.commits_of_others = 2
    _hours(fake, 5 * 24)
    assert len(_compared(fake)) == 1
    # What the others have left needs no trigger once somebody reads the table.
    fake.engine.offers["spark_catalog.shop.keyed"] = (90, 40)
    fake.engine.is_read.add("file:/spark_catalog.shop.keyed")
    _hours(fake, 20)
    assert [s for table, s, _ in fake.engine.runs if LATEST not in s]
    assert len(_compared(fake)) == 1


def test_without_a_budget_a_plan_that_removes_rows_is_known_until_the_table_changes():
    fake, _ = _keyed((90, 40), budget=None, a=(10, 40), b=(10, 40))
    fake.conf["spark.qbeast.use.service.max-tables"] = "1"
    planned_of, is_planned = [], fake.engine.appraise

    def appraise(run, schedule, pool, group_bytes):
        planned_of.append(run.table)
        appraisal = is_planned(run, schedule, pool, group_bytes)
        return replace(appraisal, offer=replace(appraisal.offer, is_asked=run.table.endswith("keyed")))

    fake.engine.appraise = appraise
    fake.threads.at_once = False
    for _ in range(8):
        fake.tick(1)
        waiting, fake.threads.waiting = fake.threads.waiting, []
        # Plans are made, and the run of another table goes on.
        for work in waiting:
            work() if work.func.__name__ == "_appraise" else None
    assert planned_of.count("spark_catalog.shop.keyed") == 1


def test_a_comparison_rewrites_no_older_revisions():
    listed = {"use.index.columns": "x", "use.optimization.type": f"UnindexedFiles,{LATEST}"}
    keys = {"use.optimization.primary-key": "id", "use.optimization.order-by": "at"}
    schedule = Schedule.of_table({**listed, **keys, "use.optimization.revision-rewrite": "true"})
    runs = [schedule.only((name,)).settings().strategies for name in (LATEST, "UnindexedFiles")]
    assert [[strategy.name for strategy in run] for run in runs] == [[LATEST], ["RevisionRewrite", "UnindexedFiles"]]


def test_a_budget_that_refuses_comparisons_only_says_once_that_it_is_used_up():
    fake, _ = _keyed((0, 10), budget=100)
    told = []
    subscription = application().notifications.subscribe(told.append)
    pools = (Pool("shop", 100, 24 * 60 * MINUTE, None),)
    fake.engine.of_fleet.change(lambda state: state.spend(pools, "shop", 90, fake.clock.now()))
    _hours(fake, 3)
    subscription.cancel()
    assert [event.kind for event in told] == [BUDGET_USED_UP]
