"""The outcomes of a table's turns, in one small file below ``_use/``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from catalog.state.state_files import FieldError, Fields, Missing, Unreadable, parse, read
from catalog.table.managed_table import ManagedTable
from procedures.fleet.outcomes import Outcome

OUTCOMES_FILE = "fleet.json"
# So many of the newest are kept.
MOST_OUTCOMES = 50
_MOST_BYTES = 2**62
_ADVICE = "What became of earlier rewrites is not taken into account. The next rewrite replaces the file."


def outcomes_of(table: ManagedTable) -> list[Outcome]:
    """Returns the outcomes of a table, the oldest first; none if they cannot be read."""
    outcomes = read(table, OUTCOMES_FILE, parse_outcomes, _ADVICE)
    return [] if isinstance(outcomes, (Missing, Unreadable)) else outcomes


def add_outcome(table: ManagedTable, outcome: Outcome) -> None:
    """Adds the newest outcome."""
    store_outcomes(table, [*outcomes_of(table), outcome])


def store_outcomes(table: ManagedTable, outcomes: Sequence[Outcome]) -> None:
    """Replaces the outcomes; the oldest of too many are left out."""
    entries = [asdict(outcome) for outcome in outcomes[-MOST_OUTCOMES:]]
    table.write_state(OUTCOMES_FILE, json.dumps({"outcomes": entries}))


def parse_outcomes(text: str) -> list[Outcome] | Unreadable:
    """The outcomes of a file's text, or why there are none; total."""
    return parse(text, lambda fields: [_outcome(entry) for entry in fields.entries("outcomes")])


def _outcome(entry: Any) -> Outcome:
    if not isinstance(entry, dict):
        raise FieldError("'outcomes' has an entry that is no object")
    fields = Fields(entry)
    measured = entry.get("measured")
    return Outcome(
        at=fields.whole_number("at"),
        cost=fields.whole_number("cost", most=_MOST_BYTES),
        predicted=_number(entry, "predicted"),
        share_before=_number(entry, "share_before"),
        saving=_number(entry, "saving"),
        measured=None if measured is None else _number(entry, "measured"),
    )


def _number(entry: Mapping[str, Any], name: str) -> float:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > _MOST_BYTES:
        raise FieldError(f"'{name}' is not a number")
    return float(value)
