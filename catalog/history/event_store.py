"""Events below ``_use/events``: those whose log entries were cleaned up, and those without a commit.

An event is a file of one line. Many of them become one file of many lines. Readers take one row per write id, so that a
crash between the steps, and two processes that merge the same files, only cost space.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.epoch_millis import LAST_MILLIS
from catalog.errors import UseError
from catalog.files.log_changes import commit_info, json_object, short_commits
from catalog.history.event_files import Marker, StoredEvent, parse_event, parse_events, parse_marker
from catalog.history.event_rows import events_in_log, history_of, stored_events, united, with_lists
from catalog.history.events import (
    COMMITTED,
    DELETED,
    EVENT_KEY,
    EVENTS_FOLDER,
    FAILED,
    IGNORED,
    LISTS_FOLDER,
    OPERATION,
    OptimizationEvent,
)
from catalog.history.recent_events import EVENTS_ADVICE, MOST_FILES
from catalog.jvm.vanished_files import read_again
from catalog.state.line_folder import FILE_NAME, FULL_CHARACTERS, LineFolder, MergedLines
from catalog.state.state_files import access_problem, read
from catalog.table.managed_table import ManagedTable
from otree.revision import LAST_REVISION_KEY

logger = logging.getLogger(__name__)

RECONCILED_FILE = "reconciled.json"

_OURS = FILE_NAME
# Before they had a folder of their own, whole events with long lists were kept among the events.
_FORMER_LIST = re.compile(r"[0-9a-f]{32}\.json")


_MARKER_ADVICE = "Events are copied from the log once more, and the file is replaced."


# ------------------------------------------------------------------------------------------------------- writing


def record(table: ManagedTable, event: OptimizationEvent, version: int, clock: Clock = SYSTEM_CLOCK) -> None:
    """Stores the event of a commit, which may outlast the log. Never fails, because the commit has the event too."""
    _keep(table, event, {"state": COMMITTED, "version": version}, clock)


def record_failure(table: ManagedTable, event: OptimizationEvent, error: UseError, clock: Clock = SYSTEM_CLOCK) -> None:
    """Stores the event of a group that was not committed; never fails."""
    # Long lists of its files are not stored.
    more = {"state": FAILED, "error": error.message, "error_code": error.code, "overflow_file": None}
    _keep(table, event, more, clock)


def record_ignored(table: ManagedTable, event: OptimizationEvent, clock: Clock = SYSTEM_CLOCK) -> None:
    """Stores the event of a trigger that started no run; ``reason`` says why. Never fails."""
    _keep(table, event, {"state": IGNORED}, clock)


def record_vacuum(
    table: ManagedTable, event: OptimizationEvent, version: int | None, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Stores the event of a vacuum; never fails.

    Args:
        table: the table.
        event: see ``catalog.history.events.event_of_vacuum``.
        version: of the commit with which Delta notes the end of a vacuum, None without one.
        clock: the time.
    """
    _keep(table, event, {"state": DELETED, "version": version}, clock)


def _keep(table: ManagedTable, event: OptimizationEvent, more: Mapping[str, object], clock: Clock) -> None:
    # The optimization of the event is done, so an error here must not fail it.
    try:
        named = event if event.table_id else replace(event, table_id=table.snapshot().table_id)
        text = json.dumps({**json.loads(named.commit_json()), **more}, separators=(",", ":"))
        table.write_state(f"{EVENTS_FOLDER}/{event.started_at}-{event.write_id}.json", text)
        merge(table, clock.now())
    except Exception as error:  # noqa: BLE001
        logger.warning("%s: an event could not be stored: %s", table.name, access_problem(error))


def reconcile(table: ManagedTable) -> None:
    """Stores the events that only the log has, as after a crash between commit and ``record``; never fails.

    The version up to which that was done is kept, so that only newer commits are read.
    """
    try:
        _reconcile(table)
    except Exception as error:  # noqa: BLE001 - see _keep
        logger.warning("%s: events could not be copied from the log: %s", table.name, access_problem(error))


def _reconcile(table: ManagedTable) -> None:
    # Read before the snapshot, so that no other process can write a mark for a later version in between.
    marker = read(table, RECONCILED_FILE, parse_marker, _MARKER_ADVICE)
    snapshot = table.snapshot()
    done = -1
    if isinstance(marker, Marker) and marker.table_id == snapshot.table_id and marker.version <= snapshot.version:
        done = marker.version
    if done == snapshot.version or LAST_REVISION_KEY not in snapshot.configuration:
        # There is no new commit, or the table was never indexed.
        return
    stored = set(table.list_state(EVENTS_FOLDER))
    lines = _committed_lines(table, done, snapshot.version)
    # A commit of another writer may contain something else in place of an event.
    events = [event for line in lines if isinstance(event := parse_event(line), StoredEvent)]
    events.sort(key=lambda event: event.started_at)
    missing = [event for event in events if f"{event.started_at}-{event.write_id}.json" not in stored]
    if missing:
        name = f"{missing[-1].started_at}-merged-{uuid.uuid4().hex}.json"
        table.write_state(f"{EVENTS_FOLDER}/{name}", "\n".join(event.line for event in missing))
    table.write_state(RECONCILED_FILE, json.dumps({"table_id": snapshot.table_id, "version": snapshot.version}))


def _committed_lines(table: ManagedTable, after: int, newest: int) -> list[str]:
    """The events of the commits after a version up to the newest one, as lines of the store.

    Short commits are read in the driver, others by a Spark job.
    """
    commits = short_commits(table.spark, table.location, (after, newest))
    if commits is not None:
        infos = {version: commit_info(text) for version, text in commits.items()}
    else:
        infos = _listed_commits(table, after, newest)
    lines = []
    for version, info in infos.items():
        if info.get("operation") == OPERATION:
            event = json_object((info.get("operationParameters") or {}).get(EVENT_KEY))
            lines.append(json.dumps({**event, "state": COMMITTED, "version": version}, separators=(",", ":")))
    return lines


def _listed_commits(table: ManagedTable, after: int, newest: int) -> dict[int, Mapping[str, Any]]:
    """What the commits after a version up to the newest one tell of themselves, as far as the log has them."""
    count = newest - after
    while True:
        rows = table.history(count).select("version", "operation", "operationParameters").collect()
        versions = [row.version for row in rows]
        # Commits that arrive now shift the window of the newest commits, so that it may begin too late.
        if min(versions) <= after + 1 or len(versions) < count:
            return {row.version: row.asDict() for row in rows if after < row.version <= newest}
        # Twice as many: beside a writer without a pause, an exact number would come too late each time.
        count = 2 * (max(versions) - after)


# ------------------------------------------------------------------------------------------------------- merging


@dataclass(frozen=True)
class TimeRange:
    """Times from ``start`` to ``end``, both included; epoch milliseconds."""

    start: int = 0
    end: int = LAST_MILLIS

    def has(self, name: str) -> bool:
        """Whether the newest event of a file of the store began in it."""
        match = _OURS.fullmatch(name)
        return match is not None and self.start <= int(match[1]) <= self.end


ALL_TIMES = TimeRange()


def unmerged_files(table: ManagedTable, now: int, times: TimeRange = ALL_TIMES) -> list[str]:
    """Returns the names of the files that a merge would take, oldest first.

    Args:
        table: the table.
        now: epoch milliseconds.
        times: when the newest event of a file began.
    """
    return _files(table).unmerged(now, times.has)


def current_files(table: ManagedTable, now: int) -> list[str]:
    """Returns the names of the files that no merged file contains.

    Args:
        table: the table.
        now: epoch milliseconds.
    """
    return _files(table).current(now)


def removable_files(table: ManagedTable, now: int) -> int:
    """Returns how many files the next merge deletes, because a merged file has contained them for long enough.

    Args:
        table: the table.
        now: epoch milliseconds.
    """
    return _files(table).removable(now)


def merge(table: ManagedTable, now: int, most_files: int | None = None, times: TimeRange = ALL_TIMES) -> int:
    """Merges the files of the store into one when there are more than ``most_files``.

    The parts stay for ``GRACE_MILLIS`` after the merge; a second file lists them until then.

    Args:
        table: the table.
        now: epoch milliseconds.
        most_files: so many files are not merged; ``MOST_FILES`` by default.
        times: when the newest event of a file began.

    Returns:
        The number of files that were merged.
    """
    return _files(table).merge(now, MOST_FILES if most_files is None else most_files, times.has)


def _files(table: ManagedTable) -> LineFolder[StoredEvent]:
    return LineFolder(table, EVENTS_FOLDER, parse_events, _merged_lines, EVENTS_ADVICE, FULL_CHARACTERS)


def _merged_lines(events: list[StoredEvent]) -> MergedLines:
    """One event per write id, a committed one where there is one, by the time when it began."""
    kept: dict[str, StoredEvent] = {}
    for event in events:
        known = kept.get(event.write_id)
        if known is None or known.state != COMMITTED:
            kept[event.write_id] = event
    ordered = sorted(kept.values(), key=lambda event: event.started_at)
    # The lines unchanged: another version may have added fields.
    return MergedLines(ordered[-1].started_at, [event.line for event in ordered])


# ------------------------------------------------------------------------------------------------------- reading


def optimizations(table: ManagedTable) -> DataFrame:
    """Returns the rows of ``<table>.optimizations`` from the log and the store, newest first."""
    return read_again(lambda: _optimizations(table))


def _optimizations(table: ManagedTable) -> DataFrame:
    names = table.list_state(EVENTS_FOLDER)
    events = events_in_log(table)
    ours = [f"{table.state_folder}/{EVENTS_FOLDER}/{n}" for n in names if _OURS.fullmatch(n)]
    if ours:
        events = united(events, stored_events(table.spark, ours), table.snapshot().table_id)
    lists = [f"{EVENTS_FOLDER}/{n}" for n in names if _FORMER_LIST.fullmatch(n)]
    lists += [f"{LISTS_FOLDER}/{n}" for n in table.list_state(LISTS_FOLDER) if n.endswith(".json")]
    return history_of(with_lists(events, [f"{table.state_folder}/{n}" for n in lists]))
