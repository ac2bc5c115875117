"""Which tables hold a lease, without Spark."""

import threading

import pytest

from catalog.jvm.metastore import KnownTable
from catalog.state import leased_tables as module
from catalog.state.lease import LEASE_MILLIS, Lease
from catalog.state.leased_tables import leased_tables

NOW = 1_000_000


def _lease(expires_at):
    return Lease("r", "host:1", "call", NOW, expires_at).to_json()


@pytest.fixture
def texts(monkeypatch):
    """Texts of leases by the name of the table; a function is called to get one."""
    found = {}

    class _Texts:
        def __init__(self, spark, folder):
            self.name = folder.split("/")[1]

        def read(self, name):
            assert name == "lease.json"
            text = found[self.name]
            return text() if callable(text) else text

    def tables_of(_spark):
        return [KnownTable("spark_catalog", "db", name, f"file:/{name}", "delta") for name in found]

    monkeypatch.setattr(module, "SharedTexts", _Texts)
    monkeypatch.setattr(module, "tables_of", tables_of)
    return found


def _denied():
    raise PermissionError


def test_tables_with_an_unexpired_lease_are_found(texts):
    texts.update(
        held=_lease(NOW + 1),
        free=None,
        expired=_lease(NOW),
        broken="{",
        denied=_denied,
        late=_lease(NOW + LEASE_MILLIS),
    )
    assert {table.name for table in leased_tables(None, NOW)} == {"held", "late"}


def test_no_table_needs_no_thread(texts):
    assert leased_tables(None, NOW) == []


def test_a_file_system_that_does_not_answer_is_left_out(texts, caplog):
    answers = threading.Event()
    texts.update(held=_lease(NOW + 1), hangs=lambda: answers.wait(60) and None)
    try:
        assert [table.name for table in leased_tables(None, NOW, seconds=0.5)] == ["held"]
    finally:
        answers.set()
    assert "1 of 2 tables could not be read in time" in caplog.text
