"""A table whose automatic optimization is suspended: a file below ``_use/``, which every process sees."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from catalog.lease import this_process
from catalog.tables import ManagedTable

SUSPENSION_FILE = "suspended.json"


@dataclass(frozen=True)
class Suspension:
    """Since when (epoch milliseconds), and by which process."""

    since: int
    by: str


def suspension_of(table: ManagedTable) -> Suspension | None:
    """The table's suspension, None when it is not suspended."""
    text = table.read_state(SUSPENSION_FILE)
    if text is None:
        return None
    try:
        return Suspension(**json.loads(text))
    except (ValueError, TypeError):
        return Suspension(0, "unknown")


def suspend(table: ManagedTable, now: int) -> Suspension:
    """Suspends the table; one that is suspended stays as it is."""
    made = Suspension(now, this_process())
    table.create_state(SUSPENSION_FILE, json.dumps(asdict(made)))
    return suspension_of(table) or made


def resume(table: ManagedTable) -> bool:
    """Ends the suspension; False when there was none."""
    there = suspension_of(table) is not None
    table.delete_state(SUSPENSION_FILE)
    return there
