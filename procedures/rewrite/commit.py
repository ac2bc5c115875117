"""A commit has three outcomes: committed, not committed, unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.errors import CommitUnknownError, ConcurrentChangeError, TableError, UseError
from catalog.history.events import EVENT_KEY, OPERATION, OptimizationEvent
from catalog.jvm.java_errors import text_of
from catalog.jvm.session import jvm
from catalog.table.managed_table import ManagedTable

# All of Delta's "another writer was first" errors descend from it; Delta raises them before it writes the log entry.
_CONFLICT = "io.delta.exceptions.DeltaConcurrentModificationException"


def java_error(error: BaseException) -> Any | None:
    """The JVM exception behind a Python one, or None."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return getattr(error, "_origin", None)


def is_conflict(error: BaseException) -> bool:
    """Whether Delta refused a commit because another writer was first."""
    java = java_error(error)
    kind = java.getClass() if java is not None else None
    while kind is not None:
        if kind.getName() == _CONFLICT:
            return True
        kind = kind.getSuperclass()
    return False


def commit(
    table: ManagedTable,
    transaction: Any,
    event: OptimizationEvent,
    tags_by_path: Mapping[str, Mapping[str, str]],
) -> int:
    """Commits, the event included, and says for certain whether it happened, where that can be known.

    Returns:
        The version committed.

    Raises:
        ConcurrentChangeError: not committed, another writer was first.
        TableError: not committed, the table was dropped.
        CommitUnknownError: the commit failed in a way that leaves its outcome open.
    """
    parameters = {"strategy": event.optimization_name, "revision": str(event.revision_id)}
    java = jvm(table.spark).java.util
    entries, tags = java.HashMap(), java.HashMap()
    for key, value in {**parameters, EVENT_KEY: event.commit_json()}.items():
        entries.put(key, value)
    for path, pairs in tags_by_path.items():
        one = java.HashMap()
        for key, value in pairs.items():
            one.put(key, value)
        tags.put(path, one)
    if event.overflow_file is not None:
        table.write_state(event.overflow_file, event.to_json())
    try:
        return int(transaction.commit(OPERATION, entries, tags))
    except BaseException as error:
        # A commit that is sent twice below Delta, as a store's client does when an answer is lost, meets itself: that
        # looks like another writer's, and deleting our files would then delete the table's.
        version = _version_of(table, event.write_id)
        if version is not None:
            return version
        if is_conflict(error):
            if event.overflow_file is not None:
                table.delete_state(event.overflow_file)
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


def _version_of(table: ManagedTable, write_id: str) -> int | None:
    """The version that carries the write id, when the log can be read and has it."""
    try:
        found = table.events(limit=100).where(F.col("write_id") == write_id).select("version").first()
    except (UseError, Py4JJavaError, PySparkException):
        return None
    return int(found.version) if found is not None else None
