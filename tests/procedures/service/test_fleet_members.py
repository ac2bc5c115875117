"""The tables of ``use.fleet``: looks go on until each has answered, and one that does not answer has a row."""

from types import SimpleNamespace

import pytest

from catalog.jvm.log_probe import Sighting
from catalog.properties.inherited import NOTHING_INHERITED
from catalog.state.automation import Automations
from catalog.state.fleet_ledger import LedgerState
from procedures.service import fleet_overview
from procedures.service.fleet_overview import Member, fleet_rows, members_of


class Tables:
    """Tables of which a look sees a few; ``dead`` ones never answer, and ``broken`` ones cannot be read."""

    def __init__(self, count, seen_in_a_look=4):
        self.names = {f"s3://b/{n}": f"spark_catalog.{'shop' if n % 2 else 'web'}.t{n:02}" for n in range(count)}
        self.seen_in_a_look = seen_in_a_look
        self.dead, self.broken, self.looks = set(), set(), []

    def listed(self):
        return dict(self.names)

    def inherited(self, names):
        return lambda name: NOTHING_INHERITED

    def look(self, questions):
        self.looks.append([question.location for question in questions])
        left = self.seen_in_a_look
        sightings = []
        for location, *_ in questions:
            if location in self.dead or not left:
                sightings.append(Sighting("late"))
                continue
            left -= 1
            if location in self.broken:
                sightings.append(Sighting("failed", detail="denied"))
            else:
                sightings.append(Sighting("changed", 3, f"id of {location}"))
        return sightings


@pytest.fixture
def seen(monkeypatch):
    def members(tables, database=None):
        monkeypatch.setattr(fleet_overview, "SparkTables", lambda spark: tables)
        return members_of(None, Automations(), 0, database)

    together = []

    def in_threads(spark, work, items):
        together.append(len(items))
        return [work(item) for item in items]

    monkeypatch.setattr(fleet_overview, "in_threads", in_threads)
    monkeypatch.setattr(fleet_overview, "member_of", lambda spark, table, *_: Member(table, None))
    return SimpleNamespace(members=members, together=together)


def test_looks_go_on_until_each_table_was_seen(seen):
    tables = Tables(10)
    members = seen.members(tables)
    assert [len(look) for look in tables.looks] == [10, 6, 2]
    assert {member.table.location for member in members} == tables.names.keys()
    assert not any(member.problem for member in members)
    # What is below the tables is read of several at a time.
    assert seen.together == [10]


def test_a_table_that_does_not_answer_has_a_row_that_says_so(seen):
    tables = Tables(10)
    tables.dead, tables.broken = {"s3://b/1", "s3://b/2"}, {"s3://b/3"}
    rows = {row.table: row for row in fleet_rows(seen.members(tables), LedgerState(), 0) if row.table}
    assert rows.keys() == set(tables.names.values())
    reasons = {name: row.reason for name, row in rows.items() if row.state == "failed"}
    assert reasons == {
        "spark_catalog.shop.t01": "It cannot be read: its file system does not answer.",
        "spark_catalog.web.t02": "It cannot be read: its file system does not answer.",
        "spark_catalog.shop.t03": "It cannot be read: denied.",
    }


def test_only_the_tables_of_a_database_are_looked_at(seen):
    tables = Tables(6)
    members = seen.members(tables, "shop")
    assert sorted(member.table.name[-3:] for member in members) == ["t01", "t03", "t05"]
    assert {location for look in tables.looks for location in look} == {"s3://b/1", "s3://b/3", "s3://b/5"}
