"""The statements that have changed rows of a table lately, from the commits of a short time; no Spark job."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from py4j.protocol import Py4JJavaError

from catalog.columns.column_names import FoundColumn
from catalog.files.arrays import Floats
from catalog.files.file_rows import bounds_of, partition_text
from catalog.files.file_table import FileTable
from catalog.files.log_changes import commit_file
from catalog.insights.statement_notes import STATEMENT_TAG
from catalog.insights.statement_pace import Span
from catalog.jvm.files import text_file
from catalog.jvm.local_rows import local_data_frame
from catalog.jvm.log_probe import exists
from catalog.table.snapshot import TableSnapshot

# Commits that are looked at, at most: the newest ones.
MAX_COMMITS = 1_000
# A larger commit is not read. A file takes about 400 bytes of it.
MAX_COMMIT_BYTES = 4_000_000
_MAX_KEPT_TABLES = 64
_OUR_OPERATIONS = "USE "
# An attribute of a condition as Spark prints it, such as day#225 or id#224L.
_ATTRIBUTE = re.compile(r"(\w+)#(\d+)")


@dataclass(frozen=True, eq=False)
class Statement:
    """A commit of a statement that read files of the table, and changed rows.

    Attributes:
        time: when the file of the commit was written, in epoch milliseconds.
        operation: such as ``MERGE``.
        compared: columns that a part of its condition compares with values, in lower case. Only these restrict which
            files it reads. None if the log does not tell.
        partitions: of the files that it removed or wrote, as ``FileTable.partition``.
        written: paths of the files that it wrote.
        low: smallest values of files that it removed, NaN where they are not known. Shape (files, columns).
        high: largest values, likewise.
        span: when it began and committed; None if its writer does not say it.
    """

    time: int
    operation: str
    compared: frozenset[str] | None
    partitions: frozenset[str]
    written: tuple[str, ...]
    low: Floats
    high: Floats
    span: Span | None = None

    @property
    def kind(self) -> Hashable:
        """Equal for statements of one job, which differ in values."""
        return self.operation, self.compared

    def compares(self, column: str) -> bool:
        """Whether its condition compares a column with values, or nobody knows.

        Args:
            column: name of a column, without the fields of a nested one.
        """
        return self.compared is None or column.lower() in self.compared


@dataclass(frozen=True)
class LoggedStatement:
    """What the text of a commit tells of a statement.

    Attributes:
        operation: see ``Statement``.
        compared: see ``Statement``.
        removed: the ``remove`` actions that change data.
        added: the ``add`` actions that change data.
        span: see ``Statement``.
    """

    operation: str
    compared: frozenset[str] | None
    removed: tuple[Mapping[str, Any], ...]
    added: tuple[Mapping[str, Any], ...]
    span: Span | None = None

    @classmethod
    def of(cls, text: str) -> LoggedStatement | None:
        """Parses the text of a commit; None if no rewrite has to stay away from it.

        Raises:
            ValueError: the text is no commit.
        """
        try:
            return cls._of(text)
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
            raise ValueError("it is no commit") from error

    @classmethod
    def _of(cls, text: str) -> LoggedStatement | None:
        lines = [json.loads(line) for line in text.split("\n") if '"commitInfo"' in line]
        info: Mapping[str, Any] = next((line["commitInfo"] for line in lines if "commitInfo" in line), {})
        if not may_repeat(info):
            return None
        actions = [json.loads(line) for line in text.split("\n") if '"add"' in line or '"remove"' in line]
        removed, added = (
            tuple(line[name] for line in actions if name in line and line[name].get("dataChange", True))
            for name in ("remove", "add")
        )
        # An insert-only MERGE removes no file, and reads some. Writers that read none need not say so.
        if not removed and not (added and info.get("isBlindAppend") is False):
            return None
        return cls(str(info.get("operation", "")), compared_columns(info), removed, added, Span.of(info))


def may_repeat(info: Mapping[str, Any]) -> bool:
    """Whether a commit is of a writer whose next statement a rewrite may fail.

    That is not so for rewrites of ours, for appends that read no file, and for sessions with USE, which repeat a
    statement that loses to a rewrite.

    Args:
        info: ``commitInfo`` of the commit; empty if the writer has left none.
    """
    is_ours = str(info.get("operation", "")).startswith(_OUR_OPERATIONS)
    return not is_ours and info.get("isBlindAppend") is not True and STATEMENT_TAG not in (info.get("tags") or {})


def compared_columns(info: Mapping[str, Any]) -> frozenset[str] | None:
    """The columns that a condition compares with values; None where the log does not tell.

    Delta prints a condition with a number for each attribute. A part between two ANDs with one attribute compares it
    with values. A part with two compares columns with each other, which rules no file out.

    Args:
        info: ``commitInfo`` of a commit.
    """
    parameters = info.get("operationParameters") or {}
    text = str(parameters.get("predicate") or "")
    parts = [dict(map(reversed, _ATTRIBUTE.findall(part))) for part in re.split(r"\bAND\b", text)]
    if not any(parts):
        return None
    return frozenset(name.lower() for part in parts if len(part) == 1 for name in part.values())


@dataclass(frozen=True, eq=False)
class _Files:
    """Files as a commit names them: paths, partitions (None = unknown), and ranges of columns."""

    path: tuple[str, ...]
    partition: tuple[str | None, ...]
    low: Floats
    high: Floats

    def __getitem__(self, part: slice) -> _Files:
        return _Files(self.path[part], self.partition[part], self.low[part], self.high[part])


@dataclass(frozen=True, eq=False)
class _Commit:
    """A commit: when its file was written, in epoch milliseconds, its statement, and the files that this wrote."""

    time: int
    statement: Statement | None = None
    written: _Files | None = None


class _KeptCommits:
    """Commits by version of tables that were looked at, the longest unused table dropped first."""

    def __init__(self) -> None:
        self._commits: OrderedDict[Hashable, dict[int, _Commit]] = OrderedDict()
        self._lock = Lock()

    def of(self, table: Hashable) -> dict[int, _Commit]:
        with self._lock:
            return dict(self._commits.get(table, {}))

    def put(self, table: Hashable, commits: Mapping[int, _Commit]) -> None:
        with self._lock:
            self._commits[table] = dict(commits)
            self._commits.move_to_end(table)
            while len(self._commits) > _MAX_KEPT_TABLES:
                self._commits.popitem(last=False)


_KEPT_COMMITS = _KeptCommits()


def recent_statements(
    snapshot: TableSnapshot, columns: Sequence[FoundColumn | None], since: int
) -> tuple[Statement, ...]:
    """Returns the statements that were committed since a time, oldest first.

    Each commit is read once in a process. No file is read if the newest commit is older.

    Args:
        snapshot: the newest version.
        columns: whose ranges are wanted.
        since: epoch milliseconds, compared with the times of the files of commits.
    """
    if snapshot.version < 0 or snapshot.committed_at < since:
        return ()
    names = tuple(None if column is None else column.stored for column in columns)
    table = snapshot.location, snapshot.table_id, names
    kept = _KEPT_COMMITS.of(table)
    commits: dict[int, _Commit] = {}
    logged: dict[int, tuple[int, LoggedStatement]] = {}
    for version in range(snapshot.version, max(snapshot.version - MAX_COMMITS, -1), -1):
        time = kept[version].time if version in kept else None
        if time is None:
            try:
                time, text = text_file(snapshot.spark, commit_file(snapshot.location, version), MAX_COMMIT_BYTES)
                found = None if text is None else LoggedStatement.of(text)
            except (Py4JJavaError, ValueError):
                break  # the log was cleaned up, or is kept elsewhere
            if found is not None:
                logged[version] = time, found
            else:
                commits[version] = _Commit(time)
        else:
            commits[version] = kept[version]
        if time < since:
            break
    if logged:
        commits |= _described(snapshot, columns, logged, commits)
    _KEPT_COMMITS.put(table, commits)
    recent = (commits[version] for version in sorted(commits) if commits[version].time >= since)
    return tuple(commit.statement for commit in recent if commit.statement is not None)


class StatementTail:
    """Watches a log for statements.

    Args:
        snapshot: the version after which it begins.
    """

    def __init__(self, snapshot: TableSnapshot) -> None:
        self._spark, self._location = snapshot.spark, snapshot.location
        self._version = snapshot.version

    @property
    def version(self) -> int:
        """The newest version that it has seen."""
        return self._version

    def new_spans(self) -> list[Span | None]:
        """The statements that were committed since the last question; one file lookup if there is no new commit."""
        spans = []
        while exists(self._spark, self._location, f"_delta_log/{self._version + 1:020d}.json"):
            self._version += 1
            path = commit_file(self._location, self._version)
            text = text_file(self._spark, path, MAX_COMMIT_BYTES).text
            try:
                statement = None if text is None else LoggedStatement.of(text)
            except ValueError:
                continue  # whatever wrote it, it was no statement that runs again
            if statement is not None:
                spans.append(statement.span)
        return spans


def _described(
    snapshot: TableSnapshot,
    columns: Sequence[FoundColumn | None],
    logged: Mapping[int, tuple[int, LoggedStatement]],
    kept: Mapping[int, _Commit],
) -> dict[int, _Commit]:
    """The statements with the ranges of their files."""
    versions = sorted(logged)
    actions = [action for version in versions for part in _parts(logged[version][1]) for action in part]
    files = _files(snapshot, columns, actions)
    _, before = snapshot.version_files.kept_before or (None, None)
    known = _Ranges(before, [commit.written for commit in kept.values()], len(columns))
    described: dict[int, _Commit] = {}
    start = 0
    for version in versions:
        time, found = logged[version]
        middle, end = start + len(found.removed), start + len(found.removed) + len(found.added)
        removed, written = files[start:middle], files[middle:end]
        # A file that gets a deletion vector is removed and added by one commit.
        known.add(written)
        low, high = known.of(removed, written)
        partitions = frozenset(part for part in (*removed.partition, *written.partition) if part is not None)
        statement = Statement(time, found.operation, found.compared, partitions, written.path, low, high, found.span)
        described[version] = _Commit(time, statement, written)
        start = end
    return described


def _parts(statement: LoggedStatement) -> tuple[Sequence[Mapping[str, Any]], ...]:
    return statement.removed, statement.added


class _Ranges:
    """Ranges of files that a table had; a ``remove`` action does not have them.

    Args:
        former: the files of an earlier version, None where none are kept.
        written: files that statements wrote.
        width: number of columns.
    """

    def __init__(self, former: FileTable | None, written: Iterable[_Files | None], width: int) -> None:
        self._former = former if former is not None and former.low.shape[1] == width else None
        self._width = width
        self._by_path: dict[str, tuple[Floats, Floats]] = {}
        for files in written:
            if files is not None:
                self.add(files)

    def add(self, files: _Files) -> None:
        self._by_path |= {path: (files.low[n], files.high[n]) for n, path in enumerate(files.path)}

    def of(self, removed: _Files, written: _Files) -> tuple[Floats, Floats]:
        """The ranges of the files that a statement removed.

        Rows of files of which nothing is known are in the files that it wrote, whose common range stands for theirs.
        """
        ranges = [found for found in map(self._of, removed.path) if found is not None]
        if len(ranges) < len(removed.path) or not ranges:
            unknown = np.full(self._width, np.nan)
            has_written = bool(written.path)
            ranges.append((written.low.min(axis=0), written.high.max(axis=0)) if has_written else (unknown, unknown))
        low, high = zip(*ranges, strict=True)
        return np.array(low, np.float64), np.array(high, np.float64)

    def _of(self, path: str) -> tuple[Floats, Floats] | None:
        found = self._by_path.get(path)
        if found is not None or self._former is None:
            return found
        try:
            position = self._former.position_of(path)
        except KeyError:
            return None
        return self._former.low[position], self._former.high[position]


def _files(
    snapshot: TableSnapshot, columns: Sequence[FoundColumn | None], actions: Sequence[Mapping[str, Any]]
) -> _Files:
    """The files of actions, in their order. Spark reads values in the driver, as it does those of ``FileTable``."""
    rows = [
        (number, action.get("partitionValues"), action.get("stats") if "modificationTime" in action else None)
        for number, action in enumerate(actions)
    ]
    data = local_data_frame(
        snapshot.spark, rows, "number BIGINT, partitionValues MAP<STRING, STRING>, stats STRING"
    ).selectExpr("number", partition_text(bool(snapshot.partition_columns)), *bounds_of(columns))
    found = sorted(data.collect(), key=lambda row: row.number)
    low, high = (
        np.array([[np.nan if value is None else value for value in row[name]] for row in found], np.float64)
        for name in ("low", "high")
    )
    shape = len(found), len(columns)
    paths = tuple(str(action["path"]) for action in actions)
    return _Files(paths, tuple(row.partition for row in found), low.reshape(shape), high.reshape(shape))
