"""``CALL use.cancel`` looks for a run of another process among all tables that hold a lease; no Spark."""

from types import SimpleNamespace

import pytest

from catalog.errors import FileSystemError, TableError, UnknownNameError
from procedures.calls import cancel as cancel_call
from procedures.calls.cancel import cancel
from procedures.process.application import Application, active

CALL = SimpleNamespace(spark=None)


@pytest.fixture
def requests(monkeypatch):
    """The tables with requests; the leases of the first table cannot be read, and the second cannot be found."""
    sent = []

    def find(spark, name):
        if "missing" in name:
            raise TableError.missing(name, "")
        return SimpleNamespace(name=name, location=f"file:/{name}", check_rights=lambda: None)

    def leases_of(table, now):
        if "silent" in table.name:
            raise FileSystemError("No answer.")
        return [SimpleNamespace(run_id=f"run of {table.name}", current="planning", holder="host:7")]

    names = [SimpleNamespace(full_name=name) for name in ("silent", "missing", "good", "other")]
    monkeypatch.setattr(cancel_call, "leased_tables", lambda spark, now: names)
    monkeypatch.setattr(cancel_call, "ManagedTable", SimpleNamespace(find=find))
    monkeypatch.setattr(cancel_call, "leases_of", leases_of)
    monkeypatch.setattr(cancel_call, "can_be_asked", lambda run_id: True)
    monkeypatch.setattr(cancel_call, "qualified", lambda spark, place: place)
    monkeypatch.setattr(cancel_call, "request_cancel", lambda table, *_: sent.append(table.name))
    with active(Application()):
        yield sent


def test_tables_that_cannot_be_read_are_left_out(requests, caplog):
    (row,) = cancel(CALL, "run of good")
    assert (row.table, row.state, requests) == ("good", "requested", ["good"])
    for name in ("silent", "missing"):
        assert f"leaves out {name}: USE_" in caplog.text
    with pytest.raises(UnknownNameError, match="run of other"):
        cancel(CALL, "run of missing")


@pytest.mark.parametrize(("name", "error"), [("missing", TableError), ("silent", FileSystemError)])
def test_a_table_that_is_named_has_to_be_readable(requests, name, error):
    with pytest.raises(error):
        cancel(CALL, "run of good", table=name)
    assert requests == []
