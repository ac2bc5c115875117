"""The statements of a soak, and the rows that each version must hold, computed from the log in Python.

Each commit carries the key of its statement, so the log says which statements happened and in which order. Nothing here
uses Spark, and only the versions that can still be read are remembered.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

# No two writers change the same row, so that only their files can conflict.
IDS_PER_WRITER = 10_000_000
# The log may show a statement later than its writer hears of it.
FORGET_SECONDS = 600
_NO_EXTRA = 999


def x_of(number: int) -> int:
    """The value of a row's x, which does not follow the order of the ids."""
    return number * 2654435761 % 1000003


X_SQL = "CAST(id * 2654435761 % 1000003 AS INT)"


@dataclass(frozen=True)
class Columns:
    """The columns of a version: ``id``, ``x``, one that is renamed, and one that is added, renamed and dropped."""

    y: str = "y"
    extra: str | None = None

    def digest_sql(self) -> str:
        """Aggregates that every engine computes alike: the number of rows, and the sum of a number for each row."""
        extra = f"coalesce(CAST({self.extra} AS BIGINT), {_NO_EXTRA})" if self.extra else str(_NO_EXTRA)
        row = f"id * 7919 + CAST(x AS BIGINT) * 104729 + CAST({self.y} AS BIGINT) * 611953 + {extra} * 1299709"
        return f"count(*) AS n, coalesce(sum(({row}) % 2147483647), 0) AS h"


@dataclass
class Values:
    """A row without its id."""

    x: int
    y: int
    extra: int | None = None

    def number(self, row_id: int) -> int:
        extra = _NO_EXTRA if self.extra is None else self.extra
        return (row_id * 7919 + self.x * 104729 + self.y * 611953 + extra * 1299709) % 2147483647


@dataclass(frozen=True)
class Statement:
    """A statement about the ids in [low, high), or a change of the columns; ``sql`` has ``{t}`` for the table."""

    kind: str
    sql: str
    low: int = 0
    high: int = 0
    rest: int = 0
    columns: Columns = Columns()


def statement(kind: str, columns: Columns, low: int, high: int, rest: int = 0) -> Statement:
    """A statement about rows; a delete or update takes those with id % 3 = rest, a trim all.

    Args:
        kind: ``insert``, ``update``, ``delete``, ``trim`` or ``merge``.
        columns: as the writer knows them.
        low: first id.
        high: the id after the last one.
        rest: of a division by 3.
    """
    names = ["id", "x", columns.y, *([columns.extra] if columns.extra else [])]
    values = ["id", X_SQL, "CAST(id % 1000 AS INT)", *(["CAST(id % 100 AS INT)"] if columns.extra else [])]
    source = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    rows, where = f"SELECT {source} FROM range({low}, {high}, 1, 1)", f"id >= {low} AND id < {high}"
    listed = ", ".join(names)
    text = {
        "insert": f"INSERT INTO {{t}} ({listed}) {rows}",
        "update": f"UPDATE {{t}} SET {columns.y} = {columns.y} + 1 WHERE {where} AND id % 3 = {rest}",
        "delete": f"DELETE FROM {{t}} WHERE {where} AND id % 3 = {rest}",
        "trim": f"DELETE FROM {{t}} WHERE {where}",
        "merge": f"MERGE INTO {{t}} t USING ({rows}) s ON t.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET {columns.y} = t.{columns.y} + 1 "
        f"WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({', '.join(f's.{name}' for name in names)})",
    }[kind]
    return Statement(kind, text, low, high, rest, columns)


def column_changes() -> Iterator[Statement]:
    """Changes of columns without end: one is added, renamed and dropped; an indexed one is renamed and renamed back."""
    number = 0
    while True:
        number += 1
        added, renamed = f"c{number}", f"d{number}"
        before = Columns()
        for sql, after in (
            (f"ADD COLUMN {added} INT", replace(before, extra=added)),
            ("RENAME COLUMN y TO z", Columns("z", added)),
            (f"RENAME COLUMN {added} TO {renamed}", Columns("z", renamed)),
            ("RENAME COLUMN z TO y", Columns("y", renamed)),
            (f"DROP COLUMN {renamed}", before),
        ):
            yield Statement("columns", f"ALTER TABLE {{t}} {sql}", columns=after)


@dataclass(frozen=True)
class Version:
    """A version that the log has, and what it must hold.

    Attributes:
        number: of the version.
        columns: its columns.
        digest: number of rows, and the sum of their numbers.
        committed: epoch seconds.
    """

    number: int
    columns: Columns
    digest: tuple[int, int]
    committed: float


@dataclass
class History:
    """Follows the log of a table.

    Args:
        path: of the table.
        seconds: how long a version is remembered after it was replaced.
    """

    path: Path
    seconds: float
    rows: dict[int, Values] = field(default_factory=dict)
    columns: Columns = Columns()
    versions: deque[Version] = field(default_factory=deque)
    _begun: dict[str, tuple[Statement, float]] = field(default_factory=dict)
    _sum: int = 0
    _count: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def begin(self, what: Statement) -> str:
        """Notes a statement; returns the key that its commit must carry."""
        with self._lock:
            self._count += 1
            key = f"soak-{self._count}"
            self._begun[key] = (what, time.time())
            return key

    def has(self, key: str) -> bool:
        """Whether the log has the commit of a statement that has ended."""
        with self._lock:
            self.follow()
            return key not in self._begun

    def newest(self) -> Version:
        """The newest version."""
        with self._lock:
            self.follow()
            return self.versions[-1]

    def readable(self, margin: float) -> list[Version]:
        """The versions that can be read for ``margin`` seconds more, oldest first."""
        with self._lock:
            self.follow()
            limit = time.time() - self.seconds + margin
            replaced = [*list(self.versions)[1:], None]
            return [v for v, by in zip(self.versions, replaced, strict=True) if by is None or by.committed > limit]

    def is_expired(self, version: Version) -> bool:
        """Whether a version need not be readable any more."""
        return version not in self.readable(0)

    def follow(self) -> None:
        """Reads the commits that are new."""
        with self._lock:
            number = self.versions[-1].number + 1 if self.versions else 0
            while (file := self.path / "_delta_log" / f"{number:020d}.json").exists():
                self._apply(number, file)
                number += 1
            now = time.time()
            # The oldest one is kept for as long as the one that replaced it is younger.
            while len(self.versions) > 1 and self.versions[1].committed < now - self.seconds:
                self.versions.popleft()
            self._begun = {key: one for key, one in self._begun.items() if one[1] > now - FORGET_SECONDS}

    def _apply(self, number: int, file: Path) -> None:
        lines = file.read_text(encoding="utf-8").splitlines()
        info = next(json.loads(line)["commitInfo"] for line in lines if line.startswith('{"commitInfo"'))
        columns, digest = self._apply_commit(number, info)
        self.versions.append(Version(number, columns, digest, file.stat().st_mtime))

    def _apply_commit(self, number: int, info: dict) -> tuple[Columns, tuple[int, int]]:
        """Returns the columns and the digest of a version whose commit is new."""
        # A rewrite of USE within the same session carries the key, too, and changes no row.
        if not info["operation"].startswith("USE ") and info.get("userMetadata") in self._begun:
            self._run(self._begun.pop(info["userMetadata"])[0])
        return self.columns, (len(self.rows), self._sum)

    def _run(self, what: Statement) -> None:
        if what.kind == "columns":
            if what.columns.extra is None:
                for number, values in list(self.rows.items()):
                    self._put(number, replace(values, extra=None))
            self.columns = what.columns
            return
        for number in range(what.low, what.high):
            values = self.rows.get(number)
            if values is None and what.kind in ("insert", "merge"):
                self._put(number, Values(x_of(number), number % 1000, number % 100 if what.columns.extra else None))
            elif values is None:
                continue
            elif what.kind == "insert":
                raise AssertionError(f"row {number} was inserted twice")
            elif what.kind == "merge" or (what.kind == "update" and number % 3 == what.rest):
                self._put(number, replace(values, y=values.y + 1))
            elif what.kind == "trim" or (what.kind == "delete" and number % 3 == what.rest):
                self._put(number, None)

    def _put(self, number: int, values: Values | None) -> None:
        former = self.rows.pop(number, None)
        if former is not None:
            self._sum -= former.number(number)
        if values is not None:
            self.rows[number] = values
            self._sum += values.number(number)
