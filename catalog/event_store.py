"""Events kept with the table, below ``_use/events``: what the log forgets, and what never became a commit."""

from __future__ import annotations

import json
import logging

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.errors import UseError, first_line
from catalog.events import OptimizationEvent
from catalog.tables import ManagedTable

logger = logging.getLogger(__name__)

EVENTS_FOLDER = "events"
COMMITTED, FAILED, IGNORED = "committed", "failed", "ignored"


def record(table: ManagedTable, event: OptimizationEvent, version: int) -> None:
    """Keeps the event of a commit, which may outlive the log; never fails, since the commit also has it."""
    _keep(table, event, {"state": COMMITTED, "version": version})


def record_failure(table: ManagedTable, event: OptimizationEvent, error: UseError) -> None:
    """Keeps the event of a group that was not committed; never fails."""
    _keep(table, event, {"state": FAILED, "error": error.message, "error_code": error.code})


def record_ignored(table: ManagedTable, event: OptimizationEvent) -> None:
    """Keeps the event of a trigger that did not lead to a run; its ``reason`` says why. Never fails."""
    _keep(table, event, {"state": IGNORED})


def _keep(table: ManagedTable, event: OptimizationEvent, more: dict[str, object]) -> None:
    text = json.dumps({**json.loads(event.to_json()), **more}, separators=(",", ":"))
    try:
        table.write_state(f"{EVENTS_FOLDER}/{event.started_at}-{event.write_id}.json", text)
    except (Py4JError, PySparkException) as error:
        logger.warning("%s: an event could not be kept: %s", table.name, first_line(error))
