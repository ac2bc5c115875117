"""``CALL use.fleet`` without Spark: which tables have a turn."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fleet_fakes import NOW, SCHEDULE, known_table

from catalog.state.fleet_ledger import LedgerState
from procedures.calls import fleet as fleet_call
from procedures.calls.fleet import fleet
from procedures.fleet.appraisal import Appraisal
from procedures.fleet.offer import Offer
from procedures.service.fleet_overview import Member

OFFER = Offer(1e9, 10_000, is_recorded=True)


@pytest.fixture
def turns(monkeypatch):
    """Runs of ``use.fleet`` over some members; returns the settings of each turn by table."""
    optimized = {}
    monkeypatch.setattr(fleet_call, "interrupted", lambda spark: False)
    monkeypatch.setattr(fleet_call, "record_outcome", lambda *arguments: None)
    ledger = SimpleNamespace(state=LedgerState)
    monkeypatch.setattr(fleet_call, "_ledger", lambda spark: ledger)

    def find(spark, name):
        return SimpleNamespace(name=name, location=f"file:/{name}", check_rights=lambda: None)

    def appraise(table, settings, run, clock, *, stores):
        if "broken" in table.name:
            raise OSError("cannot be read")
        return Appraisal(3, OFFER, 10_000)

    def optimize(table, settings, run, app, spend):
        optimized[table.name] = settings
        return []

    monkeypatch.setattr(fleet_call, "ManagedTable", SimpleNamespace(find=find))
    monkeypatch.setattr(fleet_call, "appraise", appraise)
    monkeypatch.setattr(fleet_call, "optimize", optimize)

    def run(*members):
        monkeypatch.setattr(fleet_call, "members_of", lambda *arguments: list(members))
        fleet(SimpleNamespace(spark=None))
        return optimized

    return run


def _member(name, **facts):
    table = replace(known_table(1, f"spark_catalog.web.{name}"), pools=())
    return Member(table, SCHEDULE, offer=OFFER, **facts)


def test_only_tables_that_can_be_planned_have_a_turn(turns):
    """The service of the process has found an offer for each of them."""
    suspended = _member("suspended", suspension="suspended by me", waited=NOW)
    optimized = turns(suspended, _member("broken"), _member("healthy"))
    assert list(optimized) == ["spark_catalog.web.healthy"]
    assert optimized["spark_catalog.web.healthy"].max_bytes == OFFER.cost
