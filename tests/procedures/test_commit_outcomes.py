"""What a failed commit turns out to be, apart from Spark."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from catalog.errors import CommitUnknownError, ConcurrentChangeError, TableError
from catalog.events import event_without_commit
from procedures.rewrite import commit as module


@dataclass
class Table:
    name: str = "t"
    location: str = "/t"
    there: bool = True
    spark: object = None
    deleted: list = field(default_factory=list)

    def exists(self):
        return self.there


class Transaction:
    def commit(self, *_):
        raise OSError("staged")


class HashMap(dict):
    put = dict.__setitem__


JVM = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(HashMap=HashMap)))


@pytest.mark.parametrize(
    ("conflict", "there", "version", "outcome"),
    [
        (True, True, None, ConcurrentChangeError),
        # Its own entry was in the way of itself.
        (True, True, 7, 7),
        (False, True, 7, 7),
        (False, True, None, CommitUnknownError),
        (False, False, None, TableError),
    ],
)
def test_outcomes(monkeypatch, conflict, there, version, outcome):
    monkeypatch.setattr(module, "jvm", lambda _: JVM)
    monkeypatch.setattr(module, "is_conflict", lambda _: conflict)
    monkeypatch.setattr(module, "_version_of", lambda table, write_id: version)
    event = event_without_commit("UnindexedFiles", "call", "UNINDEXED", {}, (0, 1))
    if isinstance(outcome, int):
        assert module.commit(Table(there=there), Transaction(), event, {}) == outcome
    else:
        with pytest.raises(outcome):
            module.commit(Table(there=there), Transaction(), event, {})
