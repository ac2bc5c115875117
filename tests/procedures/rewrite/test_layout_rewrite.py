"""Commits of a new revision, apart from Spark: attempts, conflicts, and what other runs make meanwhile."""

from types import SimpleNamespace

import pytest

from catalog.errors import ConcurrentChangeError
from procedures.rewrite import layout_rewrite as module


class ConflictError(Exception):
    """Stands for a conflict that Delta reports."""


class Table:
    """A table whose newest revision other writers may change before a commit."""

    name = "t"

    def __init__(self, conflicts=0, after_conflict=lambda table: None):
        self.newest, self.conflicts, self.after_conflict = 0, conflicts, after_conflict
        self.attempts = 0

    def snapshot(self):
        return self.newest

    def transaction(self, session):
        assert session == "session"
        self.attempts += 1
        return SimpleNamespace(
            state=lambda: self.newest,
            configure=lambda properties: None,
            commit_properties=self._commit,
        )

    def _commit(self, operation, parameters):
        assert operation == "USE REVISION"
        if self.conflicts:
            self.conflicts -= 1
            self.after_conflict(self)
            raise ConflictError
        self.newest = int(parameters["revision"])
        return 5


@pytest.fixture(autouse=True)
def _without_jvm(monkeypatch):
    monkeypatch.setattr(module, "TableSnapshot", SimpleNamespace(of=lambda newest: newest))
    monkeypatch.setattr(module, "PySparkException", ConflictError)
    monkeypatch.setattr(module, "is_conflict", lambda error: True)
    monkeypatch.setattr(module, "text_of", str)


def one_up(newest):
    return newest + 1, {"revision": "json"}


def test_the_first_attempt():
    table = Table()
    assert module.commit_revision(table, "session", one_up) == 1
    assert (table.newest, table.attempts) == (1, 1)


def test_each_attempt_chooses_again():
    """Another run makes revision 1 meanwhile, which does not suffice: the next attempt makes revision 2."""
    table = Table(1, lambda table: setattr(table, "newest", 1))
    assert module.commit_revision(table, "session", one_up) == 2
    assert table.attempts == 2


def test_a_revision_of_another_run_may_suffice():
    table = Table(1, lambda table: setattr(table, "newest", 1))
    assert module.commit_revision(table, "session", lambda newest: (1, {} if newest else {"revision": ""})) is None
    assert (table.newest, table.attempts) == (1, 2)


def test_attempts_are_bounded():
    table = Table(1000)
    with pytest.raises(ConcurrentChangeError, match="10 times"):
        module.commit_revision(table, "session", one_up)
    assert (table.newest, table.attempts) == (0, module.MAX_ATTEMPTS)


def test_another_error_is_not_tried_again(monkeypatch):
    monkeypatch.setattr(module, "is_conflict", lambda error: False)
    table = Table(1)
    with pytest.raises(ConflictError):
        module.commit_revision(table, "session", one_up)
    assert table.attempts == 1


def test_a_revision_is_made_although_the_answer_of_its_commit_was_lost(monkeypatch):
    monkeypatch.setattr(module, "is_conflict", lambda error: False)

    def commit_happened(table):
        table.newest = 1

    table = Table(1, commit_happened)
    number = module.commit_revision(table, "session", lambda newest: (1, {} if newest else {"p": "v"}))
    assert (number, table.attempts) == (1, 1)
