"""Which tables are due in which look: no table waits longer than its bound, whatever happened to it before."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_fakes import MINUTE, FakeService

from procedures.process.application import application
from procedures.process.running_services import CatalogChange
from procedures.service import service
from procedures.service.look_times import FULL_CHECK_EVERY, SMALL_FLEET, LookTimes

INTERVAL = 30_000
HOUR = 60 * MINUTE
START = 1_000 * HOUR
SMALL = 20
FLEET = [f"t{number}" for number in range(2 * SMALL)]


def fleet_of(ages):
    """The looks at a large fleet that was looked at once; the last commit of each table has an age."""
    times = LookTimes(SMALL)
    for number, location in enumerate(times.due(FLEET, START, INTERVAL)):
        times.record(location, START - ages[number % len(ages)], START)
    return times


def looks(times, count, changes=None, interval=INTERVAL):
    """Goes on looking; yields the time of each look, and the tables that were due in it."""
    for number in range(1, count + 1):
        now = START + number * interval
        due = times.due(FLEET, now, interval)
        for location in due:
            changed = changes is not None and location in changes.get(number, ())
            times.record(location, now if changed else None, now)
        yield now, due


@given(
    st.lists(st.integers(-HOUR, 200 * HOUR), min_size=1, max_size=20),
    st.dictionaries(st.integers(1, 60), st.sets(st.sampled_from(FLEET[:20])), max_size=10),
    st.sampled_from([1_000, INTERVAL, 10 * MINUTE]),
)
def test_no_table_waits_longer_than_the_bound(ages, changes, interval):
    seen, full = dict.fromkeys(FLEET, 0), dict.fromkeys(FLEET, 0)
    for number, (_, due) in enumerate(looks(fleet_of(ages), 60, changes, interval), 1):
        seen |= dict.fromkeys(due, number)
        full |= {location: number for location, is_full in due.items() if is_full}
        assert number - min(seen.values()) < FULL_CHECK_EVERY
        assert number - min(full.values()) < FULL_CHECK_EVERY


@given(st.integers(0, 200 * HOUR), st.integers(0, 59))
def test_a_table_waits_at_most_a_tenth_of_its_rest(age, before):
    times, last = fleet_of([age]), START
    for number, (now, due) in enumerate(looks(times, 60), 1):
        if FLEET[0] in due:
            if number > before:
                assert now - last <= max(INTERVAL, (now - START + age) / 10)
            last = now


@given(st.integers(0, 200 * HOUR), st.integers(1, 40))
def test_a_table_that_has_changed_is_in_each_look_for_a_while(age, first):
    changed_at = None
    for now, due in looks(fleet_of([age]), 60, {number: {FLEET[0]} for number in range(first, 61)}):
        if changed_at is not None:
            assert FLEET[0] in due
        if FLEET[0] in due and now >= START + first * INTERVAL:
            changed_at = changed_at or now
    assert changed_at is not None
    assert changed_at - START <= (first + FULL_CHECK_EVERY) * INTERVAL


def test_looks_at_tables_at_rest_are_spread_evenly():
    numbers = {(len(due), sum(due.values())) for _, due in looks(fleet_of([100 * HOUR]), 20)}
    assert numbers == {(len(FLEET) / FULL_CHECK_EVERY,) * 2}


def test_a_small_fleet_is_in_each_look():
    times, few = LookTimes(), [f"t{number}" for number in range(SMALL_FLEET)]
    for number in range(20):
        assert times.lists_tables(len(few))
        due = times.due(few, START + number * INTERVAL, INTERVAL)
        assert due.keys() == set(few)
        for location in due:
            times.record(location, START - 100 * HOUR, START)


def test_tables_come_first_that_a_look_did_not_come_to():
    times = fleet_of([100 * HOUR])
    times.record_late("t9")
    times.record_late("gone")
    due = times.due(FLEET, START + INTERVAL, INTERVAL)
    assert (next(iter(due)), "gone" in due) == ("t9", False)


def test_wanted_tables_are_due():
    times = fleet_of([100 * HOUR])
    due = times.due(FLEET, START + INTERVAL, INTERVAL, {"t9", "t10"})
    assert {"t9", "t10"} <= due.keys()


# ---------------------------------------------------------------------------------------------------- in the service

AUTOMATIC = {"use.optimization.type": "UnindexedFiles"}


@pytest.fixture
def large(monkeypatch):
    """A service with more tables than a small fleet, whose last commits are long ago."""
    monkeypatch.setattr(service, "LookTimes", partial(LookTimes, SMALL))
    fake = FakeService()
    fake.tables.rest = 100 * HOUR
    for number in range(len(FLEET)):
        fake.tables.put(f"t{number}", {})
    fake.tick()
    assert (fake.tables.loads, fake.tables.lists) == (len(FLEET), 1)
    yield fake
    for known in application().automations.all():
        application().automations.remove(known.location)


def test_a_look_at_a_large_fleet_asks_few_tables_and_lists_none(large):
    probes = []
    for _ in range(2 * FULL_CHECK_EVERY):
        before = large.tables.probes
        large.tick(INTERVAL)
        probes.append(large.tables.probes - before)
    assert set(probes) == {len(FLEET) / FULL_CHECK_EVERY}
    assert (large.tables.loads, large.tables.lists) == (len(FLEET), 3)


def test_changes_of_another_process_in_a_large_fleet(large):
    for number in range(len(FLEET)):
        large.tables.commit(f"t{number}")
    for _ in range(FULL_CHECK_EVERY - 1):
        large.tick(INTERVAL)
    large.tables.put("t4", AUTOMATIC)
    large.tables.put("new", AUTOMATIC)
    large.tables.drop("t5")
    large.tick(INTERVAL)
    # All tables have changed lately, so that all are looked at.
    assert sorted(name for name, *_ in large.engine.runs) == ["new", "t4"]


def test_changes_of_this_process_in_a_large_fleet(large):
    place = large.tables.put("t4", AUTOMATIC)
    large.service.notify(CatalogChange("changed", "t4", place))
    large.service.notify(CatalogChange("changed", "new", large.tables.put("new", AUTOMATIC)))
    assert large.tick(look=False) == ["new", "t4"]
    large.tables.drop("new")
    large.service.notify(CatalogChange("dropped", "new"))
    large.tick(INTERVAL)
    assert [automation.table for automation in application().automations.all()] == ["t4"]
    assert large.tables.lists == 1


def test_a_renamed_table_keeps_its_place(large):
    place = large.tables.put("t4", AUTOMATIC)
    large.service.notify(CatalogChange("changed", "t4", place))
    large.tick(look=False)
    large.tables.names[place] = "renamed"
    large.service.notify(CatalogChange("renamed", "renamed", place, "t4"))
    large.tick(look=False)
    assert [automation.table for automation in application().automations.all()] == ["renamed"]
    assert len(large.engine.runs) == 1


def test_properties_of_the_database_take_effect_in_the_next_look(large):
    large.tables.of_database = AUTOMATIC
    large.tick(INTERVAL)
    assert len(application().automations.all()) == len(FLEET)


def test_a_table_is_looked_at_before_its_run(large):
    large.conf["spark.qbeast.use.service.max-tables"] = "100"
    large.conf["spark.qbeast.use.optimization-interval"] = "4 hours"
    large.tables.of_database = AUTOMATIC
    runs = len(large.tick(INTERVAL))
    large.tick(4 * HOUR - 2 * INTERVAL)
    large.tables.commit("t7")
    before = large.tables.probes
    large.tick(INTERVAL)
    assert (runs, large.tables.probes - before) == (len(FLEET), len(FLEET))
    assert [name for name, *_ in large.engine.runs[runs:]] == []
    large.tick(INTERVAL)
    assert [name for name, *_ in large.engine.runs[runs:]] == ["t7"]


def test_a_metastore_that_is_away_keeps_no_table_from_being_looked_at(large, monkeypatch):
    def away():
        raise OSError("away")

    monkeypatch.setattr(large.tables, "listed", away)
    large.tables.put("t4", AUTOMATIC)
    for _ in range(FULL_CHECK_EVERY):
        large.tick(INTERVAL)
    assert [name for name, *_ in large.engine.runs] == ["t4"]


def test_a_table_that_is_late_is_asked_in_the_next_look(large):
    large.tables.late = {f"file:/t{number}" for number in range(len(FLEET))}
    large.tick(INTERVAL)
    large.tables.late = set()
    before = large.tables.probes
    large.tick(INTERVAL)
    assert large.tables.probes - before == 2 * len(FLEET) / FULL_CHECK_EVERY
