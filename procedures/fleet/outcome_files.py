"""The outcomes of a table's turns, in one small file below ``_use/``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.state.state_files import FieldError, Fields, Missing, Unreadable, access_problem, parse, read
from catalog.table.managed_table import ManagedTable
from procedures.fleet.outcomes import Outcome

logger = logging.getLogger(__name__)

OUTCOMES_FILE = "fleet.json"
# So many of the newest are kept.
MOST_OUTCOMES = 50
_MOST_BYTES = 2**62
_ADVICE = "What became of earlier rewrites is not taken into account. The next rewrite replaces the file."


@dataclass(frozen=True)
class TurnRecord:
    """What is kept of the turns of a table.

    Attributes:
        since: when somebody looked at its recorded reads first, epoch milliseconds; None = nobody has.
        outcomes: the outcomes of its turns, the oldest first.
    """

    since: int | None = None
    outcomes: tuple[Outcome, ...] = ()


def turns_of(table: ManagedTable) -> TurnRecord:
    """Returns what is kept of a table; nothing if it cannot be read."""
    record = read(table, OUTCOMES_FILE, parse_turns, _ADVICE)
    return TurnRecord() if isinstance(record, (Missing, Unreadable)) else record


def store_turns(table: ManagedTable, record: TurnRecord) -> None:
    """Replaces what is kept; the oldest of too many outcomes are left out.

    A denied write is no error: the next turn only knows less.
    """
    entries = [asdict(outcome) for outcome in record.outcomes[-MOST_OUTCOMES:]]
    try:
        table.write_state(OUTCOMES_FILE, json.dumps({"since": record.since, "outcomes": entries}))
    except (Py4JError, PySparkException, OSError) as error:
        logger.info("%s: what became of its turns cannot be kept: %s", table.name, access_problem(error))


def parse_turns(text: str) -> TurnRecord | Unreadable:
    """What a file's text says, or why it says nothing; total."""
    return parse(
        text,
        lambda fields: TurnRecord(
            fields.whole_or_none("since"), tuple(_outcome(entry) for entry in fields.entries("outcomes"))
        ),
    )


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
