"""What a failed commit turns out to be, apart from Spark."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from catalog.errors import CommitUnknownError, ConcurrentChangeError, FileSystemError, TableError
from catalog.history.events import event_without_commit
from procedures.rewrite import commit as module


@dataclass
class Table:
    name: str = "t"
    location: str = "/t"
    there: bool = True
    deleted: list = field(default_factory=list)
    unreadable: Exception | None = None

    def exists(self):
        return self.there

    def history(self, limit):
        raise self.unreadable

    def state(self):
        return state_of(500)


class Transaction:
    def commit(self, *_):
        raise OSError("staged")

    def state(self):
        return state_of(7)


def state_of(version):
    return SimpleNamespace(facts=lambda: SimpleNamespace(version=version))


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
    monkeypatch.setattr(module, "is_conflict", lambda _: conflict)
    monkeypatch.setattr(module, "_version_of", lambda table, write_id, read_version: version)
    event = event_without_commit("UnindexedFiles", "call", "UNINDEXED", {}, (0, 1))
    if isinstance(outcome, int):
        assert module.commit(Table(there=there), Transaction(), event, {}) == outcome
    else:
        with pytest.raises(outcome):
            module.commit(Table(there=there), Transaction(), event, {})


@pytest.mark.parametrize("conflict", [False, True])
@pytest.mark.parametrize("error", [TableError.unreadable("t", "half a file"), FileSystemError("away")])
def test_a_history_that_cannot_be_read_leaves_the_outcome_open(monkeypatch, error, conflict):
    """Any other error would have the new files deleted, and they may be the table's by now.

    A conflict may be one with the first attempt.
    """
    monkeypatch.setattr(module, "is_conflict", lambda _: conflict)
    event = event_without_commit("UnindexedFiles", "call", "UNINDEXED", {}, (0, 1))
    with pytest.raises(CommitUnknownError):
        module.commit(Table(unreadable=error), Transaction(), event, {})


def test_its_own_commit_is_found_whatever_came_after_it(monkeypatch):
    """Those who look at the newest commits only take it for one of somebody else, and delete its files."""
    searched = []

    class Events:
        def where(self, *_):
            return self

        select = where

        def first(self):
            return SimpleNamespace(version=8) if searched[-1] >= 500 - 7 else None

    monkeypatch.setattr(module, "F", SimpleNamespace(col=lambda name: name))
    monkeypatch.setattr(module, "events_in_log", lambda table, limit: searched.append(limit) or Events())
    event = event_without_commit("UnindexedFiles", "call", "UNINDEXED", {}, (0, 1))
    assert module.commit(Table(), Transaction(), event, {}) == 8
    assert len(searched) == 2
