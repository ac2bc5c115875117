"""The newest events below ``_use/events``, read without Spark: the last optimization, and recent failures."""

from __future__ import annotations

from catalog.history.event_files import StoredEvent, parse_events
from catalog.history.events import EVENTS_FOLDER, FAILED, VACUUM
from catalog.state.line_folder import FILE_NAME
from catalog.state.state_files import Missing, StateFolder, Unreadable, read

EVENTS_ADVICE = "Its events are left out. Delete the file, unless it is being written just now."
# Maximum of files to open in search of the newest event, because some may be unreadable or about a vacuum.
_MOST_LOOKED_AT = 20
# If there are more files than this, they are merged into one.
MOST_FILES = 100
# Maximum of files to open when failures are counted.
_MOST_COUNTED = 50


def newest_event(table: StateFolder, table_id: str) -> StoredEvent | None:
    """The newest event of an optimization in the store, by the time when it began; None when there is none.

    Args:
        table: the table.
        table_id: Delta's metadata id; events of a table that was there before do not count.
    """
    numbered = [(int(m[1]), n) for n in table.list_state(EVENTS_FOLDER) if (m := FILE_NAME.fullmatch(n))]
    for _, name in sorted(numbered, reverse=True)[:_MOST_LOOKED_AT]:
        events = [e for e in _events_in(table, name) or () if e.table_id == table_id and e.shown["kind"] != VACUUM]
        if events:
            return events[-1]
    return None


def recent_failures(table: StateFolder, table_id: str, since: int) -> int:
    """Returns how many groups failed since a time, according to the newest files of the store.

    Args:
        table: the table.
        table_id: Delta's metadata id; events of a table that was there before do not count.
        since: epoch milliseconds.
    """
    return sum(event.state == FAILED for event in recent_events(table, table_id, since, _MOST_COUNTED))


def recent_events(table: StateFolder, table_id: str, since: int, most_files: int = MOST_FILES) -> list[StoredEvent]:
    """Returns the events since a time from the newest files of the store, in no order; starts no Spark job.

    Args:
        table: the table.
        table_id: Delta's metadata id; events of a table that was there before do not count.
        since: epoch milliseconds.
        most_files: so many files are read at most.
    """
    numbered = [(int(m[1]), n) for n in table.list_state(EVENTS_FOLDER) if (m := FILE_NAME.fullmatch(n))]
    recent = [name for began, name in sorted(numbered, reverse=True) if began >= since][:most_files]
    events = [event for name in recent for event in _events_in(table, name) or ()]
    # A file and the merge that replaces it may both be there.
    wanted = {(e.write_id, e.state): e for e in events if e.table_id == table_id and e.started_at >= since}
    return list(wanted.values())


def _events_in(table: StateFolder, name: str) -> list[StoredEvent] | None:
    """Returns the events of a file of the store; None if any line cannot be read as an event."""
    events = read(table, f"{EVENTS_FOLDER}/{name}", parse_events, EVENTS_ADVICE)
    return None if isinstance(events, (Missing, Unreadable)) else events
