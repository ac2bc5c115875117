"""The collector on a clock of the test: no thread, no Spark."""

from dataclasses import replace

import pytest
from fake_clock import FakeClock
from fleet_fakes import known_table

from procedures.service.fleet_overview import FleetRow, Member
from sql_ext.dashboard.collector import Collector
from sql_ext.dashboard.fleet_data import FleetData, HealthNote, TableLine


class Source:
    """Tables of which each look takes a time; remembers what it was asked for."""

    def __init__(self, clock, count, milliseconds=100):
        self.clock, self.milliseconds = clock, milliseconds
        self.known = {number: known_table(number) for number in range(count)}
        self.asked, self.problem, self.sick = [], None, set()

    def prepare(self):
        pass

    def _take(self, *asked):
        self.asked.append(asked)
        self.clock.go_on(self.milliseconds)
        if self.problem is not None:
            raise self.problem

    def tables(self):
        self._take("tables")
        return list(self.known.values())

    def member(self, table):
        self._take("member", table.name)
        return Member(table, None)

    def health(self, table):
        self._take("health", table.name)
        if table.name in self.sick:
            raise ValueError("its log is damaged")
        return HealthNote(table.version, 50)

    def data(self, members, health, notes):
        lines = [
            TableLine(FleetRow(None, m.table.name, None, "idle"), None, health.get(m.table.location)) for m in members
        ]
        return FleetData(self.clock.now(), tuple(lines), notes=notes)


def rounds(collector, clock, number):
    for _ in range(number):
        clock.go_on(int(collector.round() * 1000))
    return collector.newest


@pytest.fixture
def clock():
    return FakeClock()


def test_the_first_pass_is_shown_as_it_goes_and_does_not_rest(clock):
    source = Source(clock, 100)
    collector = Collector(source, clock)
    assert collector.newest.notes.listed is None
    assert collector.round() == 0.0
    assert 0 < collector.newest.notes.looked_at < 100
    assert collector.newest.notes.passed_at is None
    assert rounds(collector, clock, 10).notes.passed_at is not None
    assert len(collector.newest.lines) == 100
    assert collector.newest.measured >= 20


def test_later_passes_take_a_tenth_of_the_time(clock):
    source = Source(clock, 100)
    collector = Collector(source, clock)
    rounds(collector, clock, 10)
    began, asked = clock.now(), len(source.asked)
    rounds(collector, clock, 50)
    busy = (len(source.asked) - asked) * source.milliseconds
    assert 0.05 < busy / (clock.now() - began) <= 0.11


def test_a_slow_table_costs_no_more_in_the_long_run(clock):
    source = Source(clock, 3, milliseconds=30_000)
    collector = Collector(source, clock)
    rounds(collector, clock, 10)
    began, asked = clock.now(), len(source.asked)
    rounds(collector, clock, 20)
    assert (len(source.asked) - asked) * 30_000 / (clock.now() - began) <= 0.11


def test_health_is_measured_again_only_for_a_new_version(clock):
    source = Source(clock, 3, milliseconds=10)
    collector = Collector(source, clock)
    source.sick.add(source.known[2].name)
    rounds(collector, clock, 5)
    measured = [asked[1] for asked in source.asked if asked[0] == "health"]
    assert sorted(measured) == sorted(table.name for table in source.known.values())
    source.known[1] = replace(source.known[1], version=9)
    newest = rounds(collector, clock, 3)
    assert [asked[1] for asked in source.asked if asked[0] == "health"][3:] == [source.known[1].name]
    assert [line.health.version for line in newest.lines if line.health] == [3, 9]


def test_changed_tables_come_before_the_others_which_have_their_turn(clock):
    source = Source(clock, 1_000, milliseconds=1)
    collector = Collector(source, clock)
    rounds(collector, clock, 3)
    assert len(collector.newest.lines) == 1_000
    source.asked.clear()
    source.known[900] = replace(source.known[900], version=4)
    rounds(collector, clock, 2)
    names = [asked[1] for asked in source.asked if asked[0] == "member"]
    assert names[0] == source.known[900].name
    assert len(names) <= 2 * 201
    rounds(collector, clock, 10)
    assert {asked[1] for asked in source.asked if asked[0] == "member"} == {t.name for t in source.known.values()}


def test_a_dropped_table_disappears(clock):
    source = Source(clock, 3, milliseconds=10)
    collector = Collector(source, clock)
    rounds(collector, clock, 3)
    gone = source.known.pop(1)
    newest = rounds(collector, clock, 2)
    assert [line.name for line in newest.lines] == [table.name for table in source.known.values()]
    assert gone.name not in [line.name for line in newest.lines]


def test_a_failure_keeps_the_last_data_and_ends_with_its_cause(clock, caplog):
    source = Source(clock, 3, milliseconds=10)
    collector = Collector(source, clock)
    rounds(collector, clock, 3)
    source.problem = OSError("the metastore is away")
    newest = rounds(collector, clock, 2)
    assert "the metastore is away" in newest.notes.problem
    assert len(newest.lines) == 3
    source.problem = None
    assert rounds(collector, clock, 2).notes.problem is None
    source.data = lambda *_: 1 / 0
    assert "division" in rounds(collector, clock, 1).notes.problem
    assert len(collector.newest.lines) == 3


def test_the_thread_ends_when_it_is_asked_to():
    clock = FakeClock()
    collector = Collector(Source(clock, 3, milliseconds=1), clock)
    collector.start()
    collector.stop()
    assert not collector._thread.is_alive()
