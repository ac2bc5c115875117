"""``CALL use.fleet`` without Spark: which tables have a turn, and what they must still be then."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fleet_fakes import NOW, SCHEDULE, known_table

from catalog.errors import TableError
from catalog.jvm import session_threads
from catalog.state.fleet_ledger import LedgerState
from procedures.calls import fleet as fleet_call
from procedures.calls.fleet import fleet
from procedures.fleet.appraisal import Appraisal
from procedures.fleet.offer import Offer
from procedures.service import execution
from procedures.service.fleet_overview import Member
from procedures.service.schedule import schedule_of

OFFER = Offer(1e9, 10_000, is_recorded=True)
KEEPS_THE_LATEST = {
    "use.compaction.primaryKey": "id",
    "use.compaction.orderBy": "at",
    "use.compaction.interval": "1 hour",
}


@pytest.fixture
def turns(monkeypatch):
    """Runs of ``use.fleet`` over some members; returns the settings of each turn by table.

    Attributes:
        moved: tables that other ones have replaced at other places, after they were listed.
        snapshots: the versions on which turns plan, by table.
        after_appraisal: called with each table between its appraisal and its turn.
        rows: the rows of the last call.
    """
    optimized = {}
    monkeypatch.setattr(fleet_call, "interrupted", lambda spark: False)
    monkeypatch.setattr(fleet_call, "record_outcome", lambda *arguments: None)
    monkeypatch.setattr(session_threads, "activate", lambda spark: None)
    monkeypatch.setattr(session_threads, "acts_for_another_user", lambda spark: False)
    monkeypatch.setattr(session_threads, "InheritableThread", threading.Thread)
    ledger = SimpleNamespace(state=LedgerState)
    monkeypatch.setattr(fleet_call, "_ledger", lambda spark: ledger)

    def find(spark, name):
        if "dropped" in name and name in appraised:
            raise TableError.gone()
        location = "file:/elsewhere" if name in run.moved else f"file:/{name}"
        return SimpleNamespace(name=name, location=location, check_rights=lambda: None)

    def appraise(table, settings, _, clock, *, stores):
        if "broken" in table.name:
            raise OSError("cannot be read")
        appraised.append(table.name)
        run.after_appraisal(table)
        return Appraisal(3, OFFER, 10_000)

    def optimize(table, settings, _, app, spend, check):
        check(run.snapshots.get(table.name) or _snapshot())
        optimized[table.name] = settings
        return []

    monkeypatch.setattr(execution, "ManagedTable", SimpleNamespace(find=find))
    monkeypatch.setattr(execution, "qualified", lambda spark, location: location)
    monkeypatch.setattr(fleet_call, "appraise", appraise)
    monkeypatch.setattr(fleet_call, "optimize", optimize)

    def run(*members):
        monkeypatch.setattr(fleet_call, "members_of", lambda *arguments: list(members))
        run.rows = {row.table: row for row in fleet(SimpleNamespace(spark=None))}
        return optimized

    appraised, run.moved, run.snapshots, run.after_appraisal = [], set(), {}, lambda table: None
    return run


def _snapshot(table_id="id1", **properties):
    return SimpleNamespace(table_id=table_id, settings=properties)


def _member(name, schedule=SCHEDULE, **facts):
    name = f"spark_catalog.web.{name}"
    table = replace(known_table(1, name), location=f"file:/{name}", pools=())
    return Member(table, schedule, offer=OFFER, **facts)


def test_only_tables_that_can_be_planned_have_a_turn(turns):
    """The service of the process has found an offer for each of them."""
    suspended = _member("suspended", suspension="suspended by me", waited=NOW)
    optimized = turns(suspended, _member("broken"), _member("healthy"))
    assert list(optimized) == ["spark_catalog.web.healthy"]
    assert optimized["spark_catalog.web.healthy"].max_bytes == OFFER.cost


@pytest.mark.parametrize(
    "snapshot",
    [
        _snapshot(),
        _snapshot(**{**KEEPS_THE_LATEST, "use.compaction.primaryKey": "other"}),
        _snapshot("id of another table", **KEEPS_THE_LATEST),
    ],
    ids=["unset", "another key", "another table at the place"],
)
def test_no_rows_are_removed_by_a_former_key(turns, snapshot):
    """Earlier turns of a call may take hours."""
    former, healthy = _member("former", schedule_of(KEEPS_THE_LATEST)), _member("healthy")
    turns.snapshots["spark_catalog.web.former"] = snapshot
    assert list(turns(former, healthy)) == ["spark_catalog.web.healthy"]
    row = turns.rows["spark_catalog.web.former"]
    assert (row.state, row.reason.partition(":")[0]) == ("failed", "USE_CONCURRENT_CHANGE")


def test_the_same_key_removes_rows(turns):
    turns.snapshots["spark_catalog.web.same"] = _snapshot(**KEEPS_THE_LATEST)
    assert list(turns(_member("same", schedule_of(KEEPS_THE_LATEST)))) == ["spark_catalog.web.same"]


def test_another_table_of_the_name_has_no_turn(turns):
    turns.after_appraisal = lambda table: turns.moved.add(table.name) if "former" in table.name else None
    assert list(turns(_member("former"), _member("healthy"))) == ["spark_catalog.web.healthy"]
    assert "is another table now" in turns.rows["spark_catalog.web.former"].reason


def test_a_table_that_is_dropped_meanwhile_does_not_end_the_call(turns):
    assert list(turns(_member("dropped"), _member("healthy"))) == ["spark_catalog.web.healthy"]
    assert turns.rows["spark_catalog.web.dropped"].state == "failed"


def test_tables_are_planned_at_the_same_time(turns, monkeypatch):
    together, appraise = threading.Barrier(8), fleet_call.appraise

    def meeting(*arguments, **named):
        together.wait(60)
        return appraise(*arguments, **named)

    monkeypatch.setattr(fleet_call, "appraise", meeting)
    assert len(turns(*(_member(f"t{number}") for number in range(8)))) == 8
