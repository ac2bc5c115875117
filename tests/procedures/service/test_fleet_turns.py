"""Budgets that tables share, and whose turn it is: the best saving per byte first, within what budgets allow."""

import threading
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from service_fakes import MINUTE, fleet, ran, the_automation, ticks

from catalog.properties.fleet_properties import Pool
from catalog.properties.hours import Hours
from catalog.properties.optimization_properties import Triggers
from catalog.state.automation import Automations
from catalog.state.fleet_ledger import USED_UP, Refusal
from procedures.fleet.appraisal import Appraisal
from procedures.fleet.offer import Offer
from procedures.process.application import application
from procedures.process.notifications import BUDGET_USED_UP
from procedures.process.running_services import CatalogChange
from procedures.service.execution import Turn
from procedures.service.queue_place import QueuePlace
from procedures.service.schedule import Schedule
from procedures.service.turn_result import EndedTurn, TurnResult
from procedures.service.turns import next_turns
from procedures.service.worker import Worker

DAY = 24 * 60 * MINUTE


def test_the_best_saving_per_byte_has_its_turn_first():
    fake = fleet({"a": (10, 40), "b": (90, 40), "c": (50, 40)}, budget=200)
    ticks(fake)
    assert ran(fake)[:3] == ["b", "c", "a"]


def test_a_used_up_budget_lets_tables_wait_and_says_so_once():
    fake = fleet({"a": (10, 40), "b": (90, 40), "c": (50, 40)}, budget=100)
    told = []
    subscription = application().notifications.subscribe(told.append)
    ticks(fake, 12)
    subscription.cancel()
    spent = fake.engine.of_fleet.state().spent_of("shop", 0)
    assert spent == 80
    waiting = the_automation("spark_catalog.shop.a")
    assert waiting.state == "waiting"
    assert "BUDGET_USED_UP: use.fleet.maxBytes = 100 of database shop leaves 20 bytes" in waiting.note
    assert waiting.next_run == pytest.approx(fake.clock.now() + DAY, abs=MINUTE)
    assert [n.kind for n in told] == [BUDGET_USED_UP]
    # Nothing is planned again and again in the meantime.
    appraised = len(fake.engine.appraised)
    fake.tick(60 * MINUTE)
    assert fake.engine.appraised[appraised:].count("spark_catalog.shop.a") == 0
    fake.tick(DAY)
    ticks(fake)
    assert ran(fake).count("a") == 2


def test_a_group_larger_than_the_budget_is_not_planned_again_and_again():
    fake = fleet({"a": (90, 140)}, budget=100)
    ticks(fake)
    planned = len(fake.engine.runs)
    for _ in range(9):
        fake.tick(MINUTE)
    assert (planned, len(fake.engine.runs)) == (1, 1)
    assert "GROUP_LARGER_THAN_BUDGET" in the_automation("spark_catalog.shop.a").note


def test_a_budget_of_all_tables_counts_too():
    fake = fleet({"a": (10, 40), "b": (90, 40)}, budget=1000)
    fake.tables.of_session = {"use.fleet.maxBytes": "50"}
    ticks(fake)
    assert fake.engine.of_fleet.state().spent_of(None, 0) == 40
    assert "50 of all tables" in the_automation("spark_catalog.shop.a").note


def test_two_services_share_a_budget():
    one = fleet({"a": (10, 40), "b": (90, 40)}, budget=100)
    two = fleet({"c": (10, 40), "d": (90, 40)}, budget=100)
    two.engine.of_fleet = one.engine.of_fleet
    for _ in range(10):
        one.tick(1)
        two.tick(1)
    assert one.engine.of_fleet.state().spent_of("shop", 0) == 80


def test_runs_at_the_same_time():
    fake = fleet({"a": (10, 40), "b": (90, 40)}, use_fleet_maxRuns="1")
    running = []
    fake.engine.during = lambda run: running.append(len(fake.engine.of_fleet.state().runs))
    ticks(fake)
    assert set(running) == {1}
    assert sorted(ran(fake)) == ["a", "b"]
    assert not fake.engine.of_fleet.state().runs


def test_no_budget_no_ledger():
    fake = fleet({"a": (10, 40), "b": (90, 40)})
    fake.engine.of_fleet = None
    ticks(fake)
    assert sorted(ran(fake)) == ["a", "b"]


def test_a_ledger_that_cannot_be_written_stops_the_budget_and_nothing_else():
    fake = fleet({"a": (10, 40)}, budget=100)

    def refuse(step):
        raise OSError("disk is full")

    fake.engine.of_fleet.change = refuse
    ticks(fake)
    assert "BUDGET_NOT_ACCESSIBLE: the ledger of the fleet: disk is full" in the_automation("spark_catalog.shop.a").note
    del fake.engine.of_fleet.change
    fake.tick(MINUTE)
    ticks(fake)
    assert fake.engine.of_fleet.state().spent_of("shop", 0) == 40


def test_a_table_that_gains_nothing_has_no_turn():
    fake = fleet({"a": (0, 40), "b": (90, 40)}, budget=1000)
    ticks(fake)
    assert ran(fake) == ["b"]
    assert "SAVES_TOO_LITTLE: reads would save 0 bytes per day" in the_automation("spark_catalog.shop.a").note


def test_reads_make_an_offer_worthwhile():
    fake = fleet({"a": (0, 40)}, budget=1000)
    for _ in range(3):
        fake.tick(10 * MINUTE)
    looked = len(fake.engine.appraised)
    assert (looked, ran(fake)) == (1, [])
    # It is looked at again, less and less often, and judged again once somebody has read it.
    fake.engine.offers["spark_catalog.shop.a"] = (90, 40)
    fake.engine.is_read.add("file:/spark_catalog.shop.a")
    for _ in range(17):
        fake.tick(10 * MINUTE)
    assert (len(fake.engine.appraised) > looked, "a" in ran(fake)) == (True, True)


def test_without_a_budget_what_saves_little_comes_last():
    fake = fleet({"a": (0, 40), "b": (90, 40), "c": (50, 40)})
    fake.conf["spark.qbeast.use.service.max-tables"] = "1"
    ticks(fake)
    assert sorted(ran(fake)) == ["a", "b", "c"]


def _worker(name, saving, waits_since, refusal=None):
    worker = Worker(f"t.{name}", f"file:/{name}", Schedule(("UnindexedFiles",), {}, Triggers(), {}), 0, Automations())
    worker.pools = (Pool("shop", 100, DAY, None),)
    worker.version = 1
    worker.place = QueuePlace(refusal, Appraisal(1, Offer(saving, 40, is_recorded=True), 40), 0, waits_since)
    return worker


@pytest.mark.parametrize("has_new_schedule", [True, False])
def test_a_new_schedule_does_not_wait_for_the_budget_that_refused_the_former_one(has_new_schedule):
    worker = _worker("a", 50, 0)
    run = worker.begin(MINUTE, worker.schedule.strategies)
    if has_new_schedule:
        worker.change(Schedule(("RevisionRewrite",), {}, Triggers(), {}), MINUTE)
    budget = SimpleNamespace(refusal=Refusal(USED_UP, "no bytes are left", DAY))
    worker.end(EndedTurn(run, Turn(budget), TurnResult()), 2 * MINUTE, MINUTE, 10 * MINUTE)
    assert worker.due_at == (2 * MINUTE if has_new_schedule else DAY)
    assert worker.place.is_waiting is not has_new_schedule


@pytest.mark.parametrize(("waited", "saving", "may_start"), [(0, 10, True), (2, 10, False), (2, 100, True)])
def test_a_table_that_waits_longer_than_a_period_keeps_its_place(waited, saving, may_start):
    now = 100 * DAY
    large = _worker("large", 50, now - waited * DAY, Refusal(USED_UP, "no bytes are left", now + DAY))
    small = _worker("small", saving, now)
    turns = next_turns([small], [large, small], 2, now, MINUTE)
    assert list(turns.start) == ([small] if may_start else [])


@pytest.mark.parametrize(("hours", "may_start"), [("00:00-02:00", False), ("02:00-04:00", True)])
def test_a_table_outside_its_hours_keeps_the_budget_from_no_other_one(hours, may_start):
    now = 100 * DAY
    large = _worker("large", 50, now - 2 * DAY, Refusal(USED_UP, "no bytes are left", now + DAY))
    large.schedule = replace(large.schedule, hours=Hours.of(hours))
    small = _worker("small", 10, now)
    turns = next_turns([small], [large, small], 2, now, MINUTE)
    assert list(turns.start) == ([small] if may_start else [])


@pytest.mark.parametrize("is_suspended", [True, False])
def test_a_table_that_cannot_start_holds_up_no_other(is_suspended):
    # "ahead" comes first and leaves too little for "large", which waits for longer than a period.
    fake = fleet({"ahead": (5400, 60), "large": (900, 60), "small": (10, 10)}, budget=100)
    ticks(fake, 8)
    assert the_automation("spark_catalog.shop.large").state == "waiting"
    place = "file:/spark_catalog.shop.large"
    if is_suspended:
        fake.engine.is_suspended.add(place)
        fake.service.notify(CatalogChange("suspended", "spark_catalog.shop.large", place))
    else:
        is_known = fake.engine.suspended
        fake.engine.suspended = lambda location: 1 / 0 if location == place else is_known(location)
    fake.engine.offers["spark_catalog.shop.ahead"] = (0, 0)
    fake.engine.runs.clear()
    for _ in range(5 * 24):
        fake.tables.commit("spark_catalog.shop.small")
        fake.tick(60 * MINUTE)
        fake.tick(1)
    assert ran(fake).count("small") >= 40
    assert "large" not in ran(fake)
    # Once nothing is in its way, it has its turn.
    fake.engine.is_suspended.clear()
    fake.service.notify(CatalogChange("resumed", "spark_catalog.shop.large", place))
    fake.engine.suspended = lambda location: False
    for _ in range(4 * 24):
        fake.tick(60 * MINUTE)
        fake.tick(1)
    assert "large" in ran(fake)


@pytest.mark.parametrize("offer", [(0, 0), (1, 40), (90, 140), (40, 40)])
def test_a_table_without_a_turn_is_maintained(offer):
    fake = fleet({"a": offer, "first": (900, 80)}, budget=100, use_log_consolidation_interval="1 day")
    fake.tables.put("spark_catalog.shop.a", {"use.retention.hours": "720"})
    name = "spark_catalog.shop.a"
    for _ in range(3 * 24):
        fake.tables.commit(name)
        fake.tables.commit("spark_catalog.shop.first")
        ticks(fake, 3)
        fake.tick(60 * MINUTE)
    assert [table for table, _ in fake.engine.reclaimed] == [name] * 4
    assert fake.engine.consolidated.count(name) == 4


def test_maintenance_leaves_the_turn_of_a_waiting_table_as_it_is():
    fake = fleet({"a": (40, 40), "first": (900, 80)}, budget=100, use_log_consolidation_interval="1 hour")
    ticks(fake)
    before = the_automation("spark_catalog.shop.a")
    assert (before.state, before.offer.cost) == ("waiting", 40)
    fake.tick(61 * MINUTE)
    fake.tick(1)
    assert fake.engine.consolidated.count("spark_catalog.shop.a") == 2
    after = the_automation("spark_catalog.shop.a")
    assert (after.state, after.offer, after.next_run) == (before.state, before.offer, before.next_run)
    # Nor does a maintenance that fails.
    fake.engine.maintain = lambda *arguments: 1 / 0
    fake.tick(61 * MINUTE)
    failed = the_automation("spark_catalog.shop.a")
    assert (failed.state, failed.offer, failed.next_run) == ("failed", before.offer, before.next_run)


@pytest.mark.parametrize("budget", [None, 1000])
def test_failures_in_a_row_are_tried_less_and_less_often(budget):
    fake = fleet({"a": (10, 40)}, budget, use_log_consolidation_interval="1 hour")
    maintain, appraise = fake.engine.maintain, fake.engine.appraise

    def without_error(work):
        def worked(*arguments):
            error, fake.engine.error = fake.engine.error, None
            try:
                return work(*arguments)
            finally:
                fake.engine.error = error

        return worked

    # Neither maintenance nor a plan ends the failures of runs.
    fake.engine.maintain, fake.engine.appraise = without_error(maintain), without_error(appraise)
    fake.engine.error = OSError("cannot be read")
    starts = []
    fake.engine.during = lambda run: starts.append(run.started_at)
    for _ in range(3 * 24 * 6):
        fake.tick(10 * MINUTE)
        # A plan, then its run.
        fake.tick()
        fake.tick()
    pauses = [after - before for before, after in pairwise(starts)]
    assert pauses[:4] == [10 * MINUTE, 20 * MINUTE, 40 * MINUTE, 80 * MINUTE]
    assert max(pauses) <= DAY + 10 * MINUTE
    assert "QUARANTINED" in the_automation("spark_catalog.shop.a").note
    # It ends by itself.
    fake.engine.error = None
    for _ in range(24 * 6 + 1):
        fake.tick(10 * MINUTE)
        fake.tick()
        fake.tick()
    assert "QUARANTINED" not in (the_automation("spark_catalog.shop.a").note or "")
    assert the_automation("spark_catalog.shop.a").state == "scheduled"


def test_a_file_system_without_an_answer_blocks_no_other_table(monkeypatch):
    monkeypatch.setattr("procedures.service.table_checks.CHECK_SECONDS", 0.05)
    fake = fleet({"a": (10, 40), "b": (90, 40)})
    suspended, answer = fake.engine.suspended, threading.Event()

    def hanging(location):
        return answer.wait(10) if location.endswith("a") else suspended(location)

    fake.engine.suspended = hanging
    ticks(fake, 2)
    assert ran(fake) == ["b"]
    failed = the_automation("spark_catalog.shop.a")
    assert (failed.state, failed.last_error.split(":")[0]) == ("failed", "USE_FILE_SYSTEM")
    answer.set()


def test_a_run_without_progress_holds_up_nobody():
    fake = fleet({"a": (10, 40), "b": (90, 40)})
    fake.conf["spark.qbeast.use.service.max-tables"] = "1"
    fake.threads.at_once = False
    fake.tick(1)
    hanging = fake.threads.waiting.pop(0)
    fake.threads.at_once = True
    fake.threads.run_all()
    fake.tick(10 * MINUTE)
    assert ran(fake) == []
    fake.tick(61 * MINUTE)
    ticks(fake)
    assert len(ran(fake)) == 1
    hanging()
