"""Parsing of the files of the event store: each text gives a value or the reason why it is invalid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.state.state_files import Unreadable, parse

_MOST_VERSION = 2**63 - 1
# Fields of an event that are shown without Spark; Spark's reader parses the others.
_TEXTS = ("optimization_name", "trigger", "reason", "error", "error_code", "kind")


@dataclass(frozen=True)
class StoredEvent:
    """One line of a file of the store.

    Attributes:
        line: the line as it is written, with the fields that only other versions know.
        write_id: of the rewrite.
        state: ``committed``, ``failed``, …; other versions may know more.
        started_at: epoch milliseconds.
        table_id: Delta's metadata id; '' where the event does not record it.
        shown: further fields for people, None where they are missing or of the wrong type.
    """

    line: str
    write_id: str
    state: str
    started_at: int
    table_id: str
    shown: Mapping[str, Any]


@dataclass(frozen=True)
class Marker:
    """The version of a table up to which the store contains the events of the log."""

    table_id: str
    version: int


def parse_event(line: str) -> StoredEvent | Unreadable:
    """Parses one line of a file of the store."""
    return parse(
        line,
        lambda fields: StoredEvent(
            line=line,
            write_id=fields.text("write_id"),
            state=fields.text("state"),
            started_at=fields.whole_number("started_at"),
            table_id=fields.text_or_none("table_id") or "",
            shown={
                **{name: fields.text_or_none(name) for name in _TEXTS},
                "finished_at": fields.whole_or_none("finished_at"),
                "version": fields.whole_or_none("version", _MOST_VERSION),
            },
        ),
    )


def parse_events(text: str) -> list[StoredEvent] | Unreadable:
    """Parses a file of the store; an invalid line makes it unreadable, because the file may be incomplete."""
    events = []
    for number, line in enumerate(text.split("\n"), start=1):
        event = parse_event(line)
        if isinstance(event, Unreadable):
            return Unreadable(event.code, f"line {number}: {event.detail}")
        events.append(event)
    return events


def parse_marker(text: str) -> Marker | Unreadable:
    """Parses the record of the events that were copied from the log."""
    return parse(
        text, lambda fields: Marker(fields.text("table_id"), fields.whole_number("version", most=_MOST_VERSION))
    )
