"""Properties of databases and sessions: which value is in force, and where it comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.properties.inherited import DATABASE, DEFAULT, NOTHING_INHERITED, SESSION, TABLE, InheritedProperties
from procedures.service.schedule import NoSchedule, schedule_of

READ_COST = "use.optimization.targetReadCost"
FLEET, AUTO, TYPE = "use.fleet.enabled", "use.optimization.autoOptimize.enabled", "use.optimization.type"
COLUMNS, CLUSTERING, COMPACTION = "use.index.columns", "use.clustering.enabled", "use.compaction.interval"
VALUES = st.one_of(st.none(), st.sampled_from(["1", "2", "3"]))


@given(own=VALUES, of_database=VALUES, of_session=VALUES)
def test_the_nearest_source_wins(own, of_database, of_session):
    def source(value):
        return {} if value is None else {READ_COST: value}

    inherited = InheritedProperties(source(of_database), source(of_session))
    nearest = next(((v, s) for v, s in ((own, TABLE), (of_database, DATABASE), (of_session, SESSION)) if v), None)
    effective = inherited.effective(source(own))
    assert effective.get(READ_COST) == (nearest and nearest[0])
    assert inherited.origin(READ_COST, source(own)) == (nearest[1] if nearest else DEFAULT)


def test_properties_of_the_table_stay_and_others_of_the_database_do_not_come():
    own = {"delta.appendOnly": "true", "use.index.onWrite": "true"}
    other = {"owner": "me", "use.index.onWrite": "false", "use.unknown": "1", "use.index.columnsAsIndexed": "a"}
    assert InheritedProperties(other, {"use.optimization-interval": "5s"}).effective(own) == own


@pytest.mark.parametrize("columns", [None, ["id", "A"]])
def test_index_columns_come_where_the_table_has_them(columns):
    inherited = InheritedProperties({COLUMNS: "id,a:hashing"})
    assert inherited.effective({}, columns)[COLUMNS] == "id,a:hashing"
    assert COLUMNS not in inherited.effective({}, ["id"])
    assert inherited.effective({COLUMNS: "b"}, ["b"])[COLUMNS] == "b"


def test_a_fleet_looks_after_tables_with_and_without_an_index():
    inherited = InheritedProperties({FLEET: "true"})
    assert inherited.effective({COLUMNS: "id"}) == {COLUMNS: "id", FLEET: "true", AUTO: "true"}
    assert inherited.effective({}) == {FLEET: "true", CLUSTERING: "true", COMPACTION: "1 hour"}
    assert inherited.effective({COMPACTION: "1 day"})[COMPACTION] == "1 day"
    assert inherited.origin(AUTO, {COLUMNS: "id"}) == DATABASE
    assert NOTHING_INHERITED.origin(CLUSTERING, {FLEET: "true"}) == TABLE


@pytest.mark.parametrize("own", [{FLEET: "false"}, {AUTO: "false"}, {TYPE: "UnindexedFiles"}])
def test_a_table_decides_for_itself(own):
    inherited = InheritedProperties({FLEET: "true", AUTO: "true"})
    assert inherited.effective({COLUMNS: "id", **own}) == {COLUMNS: "id", **own}


REQUESTS = {
    CLUSTERING: "true",
    COMPACTION: "1 day",
    "use.compaction.commits": "10",
    "use.vacuum.interval": "1 day",
    "use.log.consolidation.commits": "10",
    "use.log.consolidation.interval": "1 day",
}


def test_a_table_that_leaves_the_fleet_inherits_nothing_that_changes_it():
    left = {FLEET: "false"}
    for inherited in (InheritedProperties(REQUESTS), InheritedProperties({}, REQUESTS)):
        assert inherited.effective(left) == left
        assert schedule_of(inherited.effective(left)) == NoSchedule()
        # What it asks for itself counts, and so do values that only say how.
        assert inherited.effective({**left, COMPACTION: "1 hour"}) == {**left, COMPACTION: "1 hour"}
        assert inherited.effective({}) == REQUESTS
        assert inherited.effective({FLEET: "perhaps"}) == {FLEET: "perhaps", **REQUESTS}
    assert InheritedProperties({READ_COST: "2"}).effective(left) == {**left, READ_COST: "2"}
    assert InheritedProperties(left, REQUESTS).effective({}) == left
    assert InheritedProperties({**left, **REQUESTS}).effective({}) == {**left, **REQUESTS}


def test_no_columns_are_chosen_for_a_table_that_leaves_the_fleet():
    inherited = InheritedProperties({COLUMNS: "auto", FLEET: "true"})
    left = {FLEET: "false"}
    assert inherited.effective(left, ["a"]) == left
    chosen = {**left, CHOSEN_COLUMNS: "a"}
    assert inherited.effective(chosen, ["a"]) == {**chosen, COLUMNS: "a"}
    assert inherited.effective(chosen, ["b"]) == chosen
    assert inherited.effective({**left, COLUMNS: "auto"}, ["a"]) == {**left, **UNCHOSEN}


def test_a_switch_of_the_session_is_not_the_source_of_what_a_database_implies():
    inherited = InheritedProperties({FLEET: "true"}, {AUTO: "false", READ_COST: "2"})
    own = {COLUMNS: "id"}
    assert inherited.effective(own) == {**own, FLEET: "true", AUTO: "true", READ_COST: "2"}
    assert {key: inherited.origin(key, own) for key in (COLUMNS, FLEET, AUTO, READ_COST, CLUSTERING)} == {
        COLUMNS: TABLE,
        FLEET: DATABASE,
        AUTO: DATABASE,
        READ_COST: SESSION,
        CLUSTERING: DEFAULT,
    }


@pytest.mark.parametrize("key", ["use.retention.hours", "use.compaction.primaryKey", "use.compaction.orderBy"])
def test_what_removes_rows_or_history_is_said_by_the_table(key):
    assert InheritedProperties({key: "400"}, {key: "400"}).effective({}) == {}


def test_a_value_that_is_not_accepted_brings_nothing_in():
    assert InheritedProperties({FLEET: "perhaps"}).effective({}) == {FLEET: "perhaps"}


CHOSEN_COLUMNS, PERIOD, RECORDED = "use.index.autoColumns", "use.index.autoPeriod", "use.insights.consumption.enabled"
UNCHOSEN = {PERIOD: "30 days", RECORDED: "true"}


def test_columns_that_are_not_chosen_yet_are_none():
    inherited = InheritedProperties({COLUMNS: "auto", FLEET: "true"})
    fleet = {FLEET: "true", CLUSTERING: "true", COMPACTION: "1 hour"}
    assert inherited.effective({}, ["a"]) == {**UNCHOSEN, **fleet}
    assert NOTHING_INHERITED.effective({COLUMNS: " Auto "}) == UNCHOSEN
    assert NOTHING_INHERITED.origin(RECORDED, {COLUMNS: "auto"}) == TABLE
    assert inherited.effective({RECORDED: "false"}, ["a"])[RECORDED] == "false"
    # What names columns wins, and the word as a name of a column is in backquotes.
    assert inherited.effective({COLUMNS: "a", CHOSEN_COLUMNS: "b", PERIOD: "1 day"}, ["a", "b"]) == {
        COLUMNS: "a",
        CHOSEN_COLUMNS: "b",
        FLEET: "true",
        AUTO: "true",
    }
    assert InheritedProperties({COLUMNS: "a"}, {COLUMNS: "auto"}).effective({}, ["b"]) == UNCHOSEN
    assert NOTHING_INHERITED.effective({COLUMNS: "`auto`"}) == {COLUMNS: "`auto`"}


@pytest.mark.parametrize(
    ("chosen", "columns", "in_force"),
    [
        ("a,s.x:hashing", ["A", "s"], True),
        ("`b.c`,`s`.`x`", ["b.c", "s"], True),
        ("b.c", ["b.c"], True),
        ("a", None, True),
        ("a,b", ["a"], False),
        ("", ["a"], False),
        ("auto", ["auto"], False),
        ("`a", ["a"], False),
        ("a:sorted", ["a"], False),
    ],
)
def test_chosen_columns_count_where_the_table_has_them(chosen, columns, in_force):
    own = {CHOSEN_COLUMNS: chosen, FLEET: "true"}
    inherited = InheritedProperties({COLUMNS: "auto"})
    effective = inherited.effective(own, columns)
    assert effective.get(COLUMNS) == (chosen if in_force else None)
    assert (AUTO in effective) == in_force
    assert inherited.origin(COLUMNS, own, columns) == ("chosen from reads" if in_force else DEFAULT)
