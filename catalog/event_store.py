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
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.errors import UseError, first_line
from catalog.event_rows import COMMITTED, FAILED, IGNORED, history_of, stored_events, united, with_lists
from catalog.events import LISTS_FOLDER, OptimizationEvent
from catalog.lease import now_millis
from catalog.tables import ManagedTable
from otree.revision import LAST_REVISION_KEY

logger = logging.getLogger(__name__)

EVENTS_FOLDER = "events"
RECONCILED_FILE = "reconciled.json"
# More files than this are merged into one.
MOST_FILES = 100
# A merged file of this many characters is left alone from then on.
FULL_CHARACTERS = 8_000_000
# Readers that listed the folder before a merge find its parts for so long.
GRACE_MILLIS = 10 * 60_000

_OURS = re.compile(r"(\d+)-[^/]+\.json")
_FULL = "-full-"
_PARTS = ".parts"
# Before they had a folder of their own, whole events with long lists were kept among the events.
_FORMER_LIST = re.compile(r"[0-9a-f]{32}\.json")


# ------------------------------------------------------------------------------------------------------- writing


def record(table: ManagedTable, event: OptimizationEvent, version: int) -> None:
    """Keeps the event of a commit, which may outlive the log; never fails, since the commit also has it."""
    _keep(table, event, {"state": COMMITTED, "version": version})


def record_failure(table: ManagedTable, event: OptimizationEvent, error: UseError) -> None:
    """Keeps the event of a group that was not committed; never fails."""
    # Its lists of files, when they are long, are not worth a file.
    _keep(table, event, {"state": FAILED, "error": error.message, "error_code": error.code, "overflow_file": None})


def record_ignored(table: ManagedTable, event: OptimizationEvent) -> None:
    """Keeps the event of a trigger that did not lead to a run; its ``reason`` says why. Never fails."""
    _keep(table, event, {"state": IGNORED})


def _keep(table: ManagedTable, event: OptimizationEvent, more: Mapping[str, object]) -> None:
    try:
        named = event if event.table_id else replace(event, table_id=table.snapshot().table_id)
        text = json.dumps({**json.loads(named.commit_json()), **more}, separators=(",", ":"))
        table.write_state(f"{EVENTS_FOLDER}/{event.started_at}-{event.write_id}.json", text)
        merge(table, now_millis())
    except (UseError, Py4JError, PySparkException) as error:
        logger.warning("%s: an event could not be kept: %s", table.name, first_line(error))


def reconcile(table: ManagedTable) -> None:
    """Stores the events that only the log has, as after a crash between commit and ``record``; never fails.

    The version up to which that was done is kept, so that only newer commits are read.
    """
    try:
        _reconcile(table)
    except (UseError, Py4JError, PySparkException) as error:
        logger.warning("%s: events could not be copied from the log: %s", table.name, first_line(error))


def _reconcile(table: ManagedTable) -> None:
    snapshot = table.snapshot()
    done = _marker(table, snapshot.table_id)
    if done >= snapshot.version or LAST_REVISION_KEY not in snapshot.configuration:
        # Nothing is new, or nothing was ever indexed.
        return
    stored = set(table.list_state(EVENTS_FOLDER))
    newer = table.events(snapshot.version - done).where(F.col("version") > done)
    found = newer.select("started_at", "write_id", F.to_json(F.struct("*")).alias("line")).orderBy("started_at")
    missing = [r for r in found.collect() if f"{r.started_at}-{r.write_id}.json" not in stored]
    if missing:
        name = f"{missing[-1].started_at}-merged-{uuid.uuid4().hex}.json"
        table.write_state(f"{EVENTS_FOLDER}/{name}", "\n".join(r.line for r in missing))
    marker = {"table_id": snapshot.table_id, "version": snapshot.version}
    table.write_state(RECONCILED_FILE, json.dumps(marker))


def _marker(table: ManagedTable, table_id: str) -> int:
    """The version up to which the store has the log's events; -1 when that is not known of this table."""
    try:
        marker = json.loads(table.read_state(RECONCILED_FILE) or "{}")
        return int(marker["version"]) if marker["table_id"] == table_id else -1
    except (ValueError, TypeError, KeyError):
        return -1


# ------------------------------------------------------------------------------------------------------- merging


def merge(table: ManagedTable, now: int) -> None:
    """Merges the files of the store into one when there are more than ``MOST_FILES``.

    The parts stay for ``GRACE_MILLIS`` after the merged file is there; a file beside it lists them until then.

    Args:
        table: the table.
        now: epoch milliseconds.
    """
    names = table.list_state(EVENTS_FOLDER)
    if len(names) <= MOST_FILES:
        return
    merged_before = _delete_old_parts(table, names, now)
    parts = [n for n in names if _OURS.fullmatch(n) and _FULL not in n and n not in merged_before]
    if len(parts) <= MOST_FILES:
        return
    events: dict[str, dict[str, Any]] = {}
    whole = []
    for name in parts:
        found = _events_in(table, name)
        if found is None:
            # Being written just now, or not ours.
            continue
        whole.append(name)
        for event in found:
            kept = events.get(event["write_id"])
            if kept is None or kept["state"] != COMMITTED:
                events[event["write_id"]] = event
    if len(whole) < 2:
        return
    lines = sorted(events.values(), key=lambda event: int(event["started_at"]))
    text = "\n".join(json.dumps(event, separators=(",", ":")) for event in lines)
    kind = _FULL if len(text) >= FULL_CHARACTERS else "-merged-"
    name = f"{lines[-1]['started_at']}{kind}{uuid.uuid4().hex}"
    table.write_state(f"{EVENTS_FOLDER}/{name}.json", text)
    table.write_state(f"{EVENTS_FOLDER}/{name}{_PARTS}", json.dumps({"merged_at": now, "parts": whole}))


def _delete_old_parts(table: ManagedTable, names: list[str], now: int) -> set[str]:
    """Deletes parts of files that were merged a while ago; returns all names that are in merged files."""
    merged = set()
    for listing in (n for n in names if n.endswith(_PARTS)):
        try:
            known = json.loads(table.read_state(f"{EVENTS_FOLDER}/{listing}") or "{}")
            parts, merged_at = [p for p in known["parts"] if _OURS.fullmatch(p)], int(known["merged_at"])
        except (ValueError, TypeError, KeyError):
            # Half written: its parts are merged once more.
            continue
        merged.update(parts)
        if now - merged_at >= GRACE_MILLIS:
            for part in parts:
                table.delete_state(f"{EVENTS_FOLDER}/{part}")
            table.delete_state(f"{EVENTS_FOLDER}/{listing}")
    return merged


def _events_in(table: ManagedTable, name: str) -> list[dict[str, Any]] | None:
    """The events of a file of the store; None when any of it cannot be read as events."""
    try:
        lines = (table.read_state(f"{EVENTS_FOLDER}/{name}") or "").split("\n")
        events = [json.loads(line) for line in lines]
        wanted = all(str(e["write_id"]) and e["state"] and int(e["started_at"]) >= 0 for e in events)
    except (Py4JError, PySparkException, ValueError, TypeError, KeyError):
        return None
    return events if events and wanted else None


# ------------------------------------------------------------------------------------------------------- reading


def optimizations(table: ManagedTable) -> DataFrame:
    """The rows of ``<table>.optimizations``: what the log has, and what only the store has; newest first."""
    names = table.list_state(EVENTS_FOLDER)
    events = table.events()
    ours = [f"{table.state_folder}/{EVENTS_FOLDER}/{n}" for n in names if _OURS.fullmatch(n)]
    if ours:
        ids = {r.table_id for r in events.select("table_id").distinct().collect()}
        events = united(events, stored_events(table.spark, ours), sorted({*ids, table.snapshot().table_id}))
    lists = [f"{EVENTS_FOLDER}/{n}" for n in names if _FORMER_LIST.fullmatch(n)]
    lists += [f"{LISTS_FOLDER}/{n}" for n in table.list_state(LISTS_FOLDER) if n.endswith(".json")]
    return history_of(with_lists(events, [f"{table.state_folder}/{n}" for n in lists]))


def newest_event(table: ManagedTable, table_id: str) -> Mapping[str, Any] | None:
    """The newest event in the store, by the time when it began; None when there is none.

    Args:
        table: the table.
        table_id: Delta's metadata id; events of a table that was there before do not count.
    """
    numbered = [(int(m[1]), n) for n in table.list_state(EVENTS_FOLDER) if (m := _OURS.fullmatch(n))]
    for _, name in sorted(numbered, reverse=True)[:5]:
        events = [e for e in _events_in(table, name) or () if e.get("table_id") == table_id]
        if events:
            return events[-1]
    return None
