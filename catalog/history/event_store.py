"""Events kept with the table, below ``_use/events``: what the log forgets, and what never became a commit.

An event is a file of one line. Many of them become one file of many lines. Readers take one row per write id, so that a
crash between the steps, and two processes that do the same, cost space and nothing else.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.errors import UseError
from catalog.history.event_files import (
    Marker,
    MergedParts,
    StoredEvent,
    parse_event,
    parse_events,
    parse_marker,
    parse_parts,
)
from catalog.history.event_rows import history_of, stored_events, united, with_lists
from catalog.history.events import COMMITTED, DELETED, FAILED, IGNORED, LISTS_FOLDER, VACUUM, OptimizationEvent
from catalog.history.moments import LAST_MILLIS
from catalog.state.state_files import Missing, Unreadable, access_problem, read
from catalog.table.managed_table import ManagedTable
from otree.revision import LAST_REVISION_KEY

logger = logging.getLogger(__name__)

EVENTS_FOLDER = "events"
RECONCILED_FILE = "reconciled.json"
# If there are more files than this, they are merged into one.
MOST_FILES = 100
# A merged file of this many characters is not merged again.
FULL_CHARACTERS = 8_000_000
# Parts stay this long after a merge, for readers that listed the folder before it.
GRACE_MILLIS = 10 * 60_000
# Maximum of files to open in search of the newest event, because some may be unreadable or about a vacuum.
_MOST_LOOKED_AT = 20
# Maximum of files to open when failures are counted.
_MOST_COUNTED = 50

_OURS = re.compile(r"(\d+)-[^/]+\.json")
_FULL = "-full-"
_PARTS = ".parts"
# Before they had a folder of their own, whole events with long lists were kept among the events.
_FORMER_LIST = re.compile(r"[0-9a-f]{32}\.json")


_EVENTS_ADVICE = "Its events are left out. Delete the file, unless it is being written just now."
_PARTS_ADVICE = "Its parts are merged once more. Delete the file, unless it is being written just now."
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
    newer = table.events(snapshot.version - done).where(F.col("version") > done)
    lines = newer.select(F.to_json(F.struct("*")).alias("line")).orderBy("started_at")
    # A commit of another writer may contain something else in place of an event.
    events = [event for row in lines.collect() if isinstance(event := parse_event(row.line), StoredEvent)]
    missing = [event for event in events if f"{event.started_at}-{event.write_id}.json" not in stored]
    if missing:
        name = f"{missing[-1].started_at}-merged-{uuid.uuid4().hex}.json"
        table.write_state(f"{EVENTS_FOLDER}/{name}", "\n".join(event.line for event in missing))
    table.write_state(RECONCILED_FILE, json.dumps({"table_id": snapshot.table_id, "version": snapshot.version}))


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
    names = table.list_state(EVENTS_FOLDER)
    merged = {part for listing in _listings(table, names, now) for part in listing.parts}
    return [n for n in names if times.has(n) and _FULL not in n and n not in merged]


def merge(table: ManagedTable, now: int, most_files: int | None = None, times: TimeRange = ALL_TIMES) -> int:
    """Merges the files of the store into one when there are more than ``most_files``.

    The parts stay for ``GRACE_MILLIS`` after the merged file is there; a file beside it lists them until then.

    Args:
        table: the table.
        now: epoch milliseconds.
        most_files: so many files are not merged; ``MOST_FILES`` by default.
        times: when the newest event of a file began.

    Returns:
        The number of files that were merged.
    """
    most_files = MOST_FILES if most_files is None else most_files
    names = table.list_state(EVENTS_FOLDER)
    if len(names) <= most_files:
        return 0
    merged_before = _delete_old_parts(table, names, now)
    parts = [n for n in names if times.has(n) and _FULL not in n and n not in merged_before]
    if len(parts) <= most_files:
        return 0
    events: dict[str, StoredEvent] = {}
    readable: list[str] = []
    for name in parts:
        file_events = _events_in(table, name)
        if file_events is None:
            # The file is still being written, or is not a file of events.
            continue
        readable.append(name)
        for event in file_events:
            kept = events.get(event.write_id)
            if kept is None or kept.state != COMMITTED:
                events[event.write_id] = event
    if len(readable) < 2:
        return 0
    ordered = sorted(events.values(), key=lambda event: event.started_at)
    # Copy the lines unchanged: another version may have added fields.
    text = "\n".join(event.line for event in ordered)
    kind = _FULL if len(text) >= FULL_CHARACTERS else "-merged-"
    name = f"{ordered[-1].started_at}{kind}{uuid.uuid4().hex}"
    table.write_state(f"{EVENTS_FOLDER}/{name}.json", text)
    table.write_state(f"{EVENTS_FOLDER}/{name}{_PARTS}", json.dumps({"merged_at": now, "parts": readable}))
    return len(readable)


class _Listing(NamedTuple):
    """The parts of a merged file that exist."""

    merged_at: int
    name: str
    parts: frozenset[str]


def _listings(table: ManagedTable, names: list[str], now: int) -> list[_Listing]:
    # The clocks of hosts differ slightly.
    parsed = partial(parse_parts, latest=now + GRACE_MILLIS)
    listings = []
    for name in (n for n in names if n.endswith(_PARTS)):
        listing = read(table, f"{EVENTS_FOLDER}/{name}", parsed, _PARTS_ADVICE)
        if isinstance(listing, MergedParts):
            parts = frozenset(part for part in listing.parts if _OURS.fullmatch(part)).intersection(names)
            listings.append(_Listing(listing.merged_at, name, parts))
    return listings


def _delete_old_parts(table: ManagedTable, names: list[str], now: int) -> set[str]:
    """Deletes the parts of earlier merges after the grace period; returns the names of all merged parts."""
    merged: set[str] = set()
    # Oldest first: a merged file may be a part of a later one.
    for merged_at, name, parts in sorted(_listings(table, names, now), key=lambda listing: listing.merged_at):
        if now - merged_at >= GRACE_MILLIS:
            if parts and _events_in(table, name.removesuffix(_PARTS) + ".json") is None:
                # The merged file was damaged in the meantime: its parts stay and are merged again.
                continue
            for part in parts:
                table.delete_state(f"{EVENTS_FOLDER}/{part}")
            table.delete_state(f"{EVENTS_FOLDER}/{name}")
        merged.update(parts)
    return merged


def _events_in(table: ManagedTable, name: str) -> list[StoredEvent] | None:
    """Returns the events of a file of the store; None if any line cannot be read as an event."""
    events = read(table, f"{EVENTS_FOLDER}/{name}", parse_events, _EVENTS_ADVICE)
    return None if isinstance(events, (Missing, Unreadable)) else events


# ------------------------------------------------------------------------------------------------------- reading


def optimizations(table: ManagedTable) -> DataFrame:
    """Returns the rows of ``<table>.optimizations`` from the log and the store, newest first."""
    names = table.list_state(EVENTS_FOLDER)
    events = table.events()
    ours = [f"{table.state_folder}/{EVENTS_FOLDER}/{n}" for n in names if _OURS.fullmatch(n)]
    if ours:
        events = united(events, stored_events(table.spark, ours), table.snapshot().table_id)
    lists = [f"{EVENTS_FOLDER}/{n}" for n in names if _FORMER_LIST.fullmatch(n)]
    lists += [f"{LISTS_FOLDER}/{n}" for n in table.list_state(LISTS_FOLDER) if n.endswith(".json")]
    return history_of(with_lists(events, [f"{table.state_folder}/{n}" for n in lists]))


def newest_event(table: ManagedTable, table_id: str) -> StoredEvent | None:
    """The newest event of an optimization in the store, by the time when it began; None when there is none.

    Args:
        table: the table.
        table_id: Delta's metadata id; events of a table that was there before do not count.
    """
    numbered = [(int(m[1]), n) for n in table.list_state(EVENTS_FOLDER) if (m := _OURS.fullmatch(n))]
    for _, name in sorted(numbered, reverse=True)[:_MOST_LOOKED_AT]:
        events = [e for e in _events_in(table, name) or () if e.table_id == table_id and e.shown["kind"] != VACUUM]
        if events:
            return events[-1]
    return None


def recent_failures(table: ManagedTable, table_id: str, since: int) -> int:
    """Returns how many groups failed since a time, as far as the newest files of the store tell.

    Args:
        table: the table.
        table_id: Delta's metadata id; events of a table that was there before do not count.
        since: epoch milliseconds.
    """
    numbered = [(int(m[1]), n) for n in table.list_state(EVENTS_FOLDER) if (m := _OURS.fullmatch(n))]
    recent = [name for began, name in sorted(numbered, reverse=True) if began >= since][:_MOST_COUNTED]
    failed = {
        event.write_id
        for name in recent
        for event in _events_in(table, name) or ()
        if event.state == FAILED and event.table_id == table_id and event.started_at >= since
    }
    return len(failed)
