"""Where the simulated table is, and what the product does with each of its state files."""

from __future__ import annotations

ROOT = "sim:/t"
ROW_BYTES = 10


_PHASES = {
    "lease.json": "lease",
    "protected": "protect",
    "reclaimed": "reclaim",
    "reclaimed.json": "reclaim",
    "events": "events",
    "lists": "events",
    "reconciled.json": "events",
    "writes": "write record",
    "cancels": "cancel",
    "suspended.json": "suspend",
    "plans": "plan",
}


def phase_of(file: str) -> str:
    """The phase in which a state file is read and written.

    Args:
        file: path below the table.
    """
    parts = file.split("/")
    if len(parts) > 3 and parts[1] == "plans":
        return "claims" if parts[3] == "groups" else "lease" if parts[3] == "runs" else "plan"
    return _PHASES.get(parts[1] if len(parts) > 1 else "", "write check")
