"""Alerts about the health of a table: which thresholds are crossed, and which were at the last check."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from catalog.properties.alert_properties import SCORE, AlertPolicy
from catalog.state.state_files import Missing, Unreadable, parse, read
from catalog.table.managed_table import ManagedTable
from procedures.process.notifications import ALERT, RECOVERED, Notification, Notifications

logger = logging.getLogger(__name__)

STATE_FILE = "alerts.json"
_ADVICE = "All thresholds count as not crossed; the file is replaced at the next look."


def crossed_before(table: ManagedTable) -> frozenset[str]:
    """Returns the values that crossed a threshold at the last check of any process.

    Args:
        table: the table.
    """
    names = read(table, STATE_FILE, _parse, _ADVICE)
    return frozenset() if isinstance(names, (Missing, Unreadable)) else names


def _parse(text: str) -> frozenset[str] | Unreadable:
    return parse(text, lambda fields: frozenset(fields.texts("crossed")))


def look(
    table: ManagedTable, policy: AlertPolicy, values: Mapping[str, float], now: int, notifications: Notifications
) -> None:
    """Compares the health of a table with its thresholds, and sends an alert when one is crossed, not at each check.

    Args:
        table: the table.
        policy: the thresholds.
        values: what was measured, by part; the score as ``SCORE``.
        now: epoch milliseconds.
        notifications: gets the alerts.
    """
    crossed, before = policy.crossed(values), crossed_before(table)
    if crossed.keys() == before:
        return
    # Stored first: a lost alert is better than one at each check.
    table.write_state(STATE_FILE, json.dumps({"crossed": sorted(crossed)}))
    for name in sorted(crossed.keys() - before):
        message = f"{_measurement(name, values)} is {_side(name)} {crossed[name]:g}: CALL use.health says what mends it"
        logger.warning("%s: %s", table.name, message)
        notifications.send(Notification(ALERT, table.name, now, message, values))
    for name in sorted(before - crossed.keys()):
        message = f"{_measurement(name, values)} is within its threshold again"
        logger.info("%s: %s", table.name, message)
        notifications.send(Notification(RECOVERED, table.name, now, message, values))


def _measurement(name: str, values: Mapping[str, float]) -> str:
    label = "the score of health" if name == SCORE else name
    return f"{label}, {values[name]:.4g}," if name in values else label


def _side(name: str) -> str:
    return "below" if name == SCORE else "above"
