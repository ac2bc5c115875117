"""A commit has three outcomes: committed, not committed, unknown."""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.errors import CommitUnknownError, ConcurrentChangeError, TableError, UseError
from catalog.history.event_rows import events_in_log
from catalog.history.events import EVENT_KEY, OPERATION, OptimizationEvent
from catalog.jvm.java_errors import is_conflict, text_of
from catalog.jvm.table_transaction import TableTransaction
from catalog.table.managed_table import ManagedTable

# So many of the newest commits are searched first.
_COMMITS = 100


def commit(
    table: ManagedTable,
    transaction: TableTransaction,
    event: OptimizationEvent,
    tags_by_path: Mapping[str, Mapping[str, str]],
    data_change: bool = False,
) -> int:
    """Commits, the event included, and says for certain whether it happened, where that can be known.

    Args:
        table: the table.
        transaction: has taken and written files.
        event: what the commit tells of itself.
        tags_by_path: tags of the files written.
        data_change: whether live rows were left out.

    Returns:
        The version committed.

    Raises:
        ConcurrentChangeError: not committed, another writer was first, or the wait for statements was given up.
        TableError: not committed, the table was dropped.
        CommitUnknownError: the commit failed in a way that leaves its outcome open, or it failed and the log cannot be
            read.
    """
    parameters = {"strategy": event.optimization_name, "revision": str(event.revision_id)}
    entries = {**parameters, EVENT_KEY: event.commit_json()}
    if event.overflow_file is not None:
        table.write_state(event.overflow_file, event.to_json())
    try:
        return transaction.commit(OPERATION, entries, tags_by_path, data_change)
    except BaseException as error:
        # A store's client may send a commit again when it gets no answer. The second attempt conflicts with the first
        # one, and deleting the files written would delete files of the table.
        try:
            version = _version_of(table, event.write_id, transaction.state().facts().version)
            is_read = True
        except (UseError, Py4JJavaError, PySparkException):
            # Even a conflict may be one with the first attempt.
            version, is_read = None, False
        if version is not None:
            return version
        if is_read and (is_conflict(error) or isinstance(error, ConcurrentChangeError)):
            if event.overflow_file is not None:
                table.delete_state(event.overflow_file)
            if isinstance(error, ConcurrentChangeError):
                raise
            raise ConcurrentChangeError(f"Another writer was first: {text_of(error)}") from error
        if not table.exists():
            # Delta writes no log entry where there is no log.
            raise TableError.missing(table.name, "it was dropped meanwhile") from error
        raise CommitUnknownError(
            f"The commit of write {event.write_id} to {table.location} failed and may still appear; its files are "
            f"kept. If no version with this write id shows in {table.name}.optimizations, vacuum removes them: "
            f"{text_of(error)}.",
            write_id=event.write_id,
        ) from error


def _version_of(table: ManagedTable, write_id: str, read_version: int) -> int | None:
    """The version that carries the write id; None if no version after the one that was read does.

    Raises:
        UseError: the log cannot be read.
        Py4JJavaError: likewise.
        PySparkException: likewise.
    """
    limit = _COMMITS
    while True:
        event = events_in_log(table, limit).where(F.col("write_id") == write_id).select("version").first()
        if event is not None:
            return int(event.version)
        # Read afterwards: the search has seen no newer version than this one.
        later = table.state().facts().version - read_version
        if later <= limit:
            return None
        limit = later + _COMMITS
