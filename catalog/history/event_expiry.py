"""Deletes old events below ``_use/``, and the lists of files that belong to them."""

from __future__ import annotations

import json
import re

from catalog.history.events import EVENTS_FOLDER, LISTS_FOLDER
from catalog.table.managed_table import ManagedTable

# The number is the time at which the newest event of the file began.
_FILE = re.compile(r"(\d+)-[^/]+\.(?:json|parts)")
_LIST = re.compile(rf"{LISTS_FOLDER}/[0-9a-f]{{32}}\.json")


def expired_files(table: ManagedTable, before: int, start: int = 0) -> list[str]:
    """Returns the files of events that all began before a time, relative to ``_use/``.

    Args:
        table: the table.
        before: epoch milliseconds.
        start: leaves out files whose newest event began before; epoch milliseconds.
    """
    names = table.list_state(EVENTS_FOLDER)
    return [f"{EVENTS_FOLDER}/{n}" for n in names if (m := _FILE.fullmatch(n)) and start <= int(m[1]) < before]


def delete_expired(table: ManagedTable, before: int, start: int = 0) -> int:
    """Deletes them, and the lists of files that the events name; returns the number of files.

    Args:
        table: the table.
        before: epoch milliseconds.
        start: leaves out files whose newest event began before; epoch milliseconds.
    """
    count = 0
    for file in expired_files(table, before, start):
        # The lists first: a list without its event would never be deleted.
        for of_event in _lists_of(table.read_state(file) or ""):
            table.delete_state(of_event)
            count += 1
        table.delete_state(file)
        count += 1
    return count


def _lists_of(text: str) -> list[str]:
    lists = []
    for line in text.split("\n"):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        file = event.get("overflow_file") if isinstance(event, dict) else None
        if isinstance(file, str) and _LIST.fullmatch(file):
            lists.append(file)
    return lists
