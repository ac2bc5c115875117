"""The threads of a soak that write rows and change columns."""

import random

from soak.board import Soak
from soak.history import IDS_PER_WRITER, Statement, column_changes, statement

KINDS = ("insert", "insert", "insert", "update", "delete", "merge", "merge")
ROWS_PER_STATEMENT, ROWS_PER_WRITER = 60, 2_000


class Writer:
    """Inserts, updates, deletes and merges rows of its own, of which it keeps about as many all the time."""

    def __init__(self, soak: Soak, number: int, seed: int) -> None:
        self.soak, self.session, self.chance = soak, soak.spark.newSession(), random.Random(seed)
        self.first = self.next = number * IDS_PER_WRITER

    def step(self) -> None:
        """One statement."""
        what = self._statement()
        done = self.soak.execute(self.session, what)
        if what.kind == "insert":
            # The rows of a failed insert are never written again.
            self.next = what.high
        elif what.kind == "trim" and done:
            self.first = what.high

    def _statement(self) -> Statement:
        columns, size = self.soak.history.newest().columns, ROWS_PER_STATEMENT
        if self.next - self.first > ROWS_PER_WRITER:
            return statement("trim", columns, self.first, self.first + ROWS_PER_WRITER // 5)
        kind = self.chance.choice(KINDS)
        if kind == "insert" or self.next == self.first:
            return statement("insert", columns, self.next, self.next + self.chance.randint(1, size))
        low = self.chance.randrange(self.first, self.next)
        return statement(kind, columns, low, min(low + size, self.next), self.chance.randrange(3))


class ColumnChanger:
    """Adds, renames and drops columns."""

    def __init__(self, soak: Soak) -> None:
        self.soak, self.session, self.changes = soak, soak.spark.newSession(), column_changes()
        self.change = next(self.changes)

    def step(self) -> None:
        """The next change, or the last one again if it lost to another commit."""
        if self.soak.execute(self.session, self.change):
            self.change = next(self.changes)
