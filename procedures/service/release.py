"""The end of automatic optimization of a table: the properties that ask for it, and the state that it has stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.properties.fleet_properties import FLEET_ENABLED_KEY
from catalog.properties.lifecycle_properties import CLUSTERING_PREFIX, COMPACTION_PREFIX
from catalog.properties.optimization_properties import PREFIX, effective_type
from catalog.state.plan_expiry import delete_plans, expired_plans
from catalog.state.plan_files import PLANS_FOLDER
from catalog.state.state_files import access_problem
from catalog.state.suspension import SUSPENSION_FILE
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.fleet.outcome_files import OUTCOMES_FILE
from procedures.insight.recommendation.column_choice import STATE_FILE as COLUMN_CHOICE_FILE

logger = logging.getLogger(__name__)

_PREFIXES = (PREFIX, CLUSTERING_PREFIX, COMPACTION_PREFIX)
_FILES = (SUSPENSION_FILE, OUTCOMES_FILE, COLUMN_CHOICE_FILE)


def automatic_properties(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the keys of a table's own properties that ask for rewrites of its files in the background.

    Args:
        configuration: its own properties.
    """
    return tuple(sorted(key for key in configuration if key == FLEET_ENABLED_KEY or key.startswith(_PREFIXES)))


def switches_off(snapshot: TableSnapshot, own: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties that a table needs so that its database or the session does not have it optimized.

    Args:
        snapshot: a version of the table.
        own: its own properties without those that are removed.
    """
    return {} if remaining_strategies(snapshot, own) is None else {FLEET_ENABLED_KEY: "false"}


def remaining_strategies(snapshot: TableSnapshot, own: Mapping[str, str]) -> str | None:
    """Returns the strategies that still run in the background, separated by commas; None if none do.

    Args:
        snapshot: a version of the table.
        own: its own properties.
    """
    return effective_type(snapshot.inherited.effective(own, snapshot.schema.names))


def release_state(table: ManagedTable, now: int) -> list[str]:
    """Deletes what is stored below ``_use/`` for future runs. A file that cannot be deleted is logged, and stays.

    Stored plans that a run is executing stay, too.

    Args:
        table: the table.
        now: epoch milliseconds.

    Returns:
        What was deleted, relative to the state folder.
    """
    deleted = []
    for file in _FILES:
        try:
            if table.read_state(file) is None:
                continue
            table.delete_state(file)
        except (Py4JError, PySparkException, OSError) as error:
            logger.warning("%s of %s was not deleted: %s", file, table.name, access_problem(error))
            continue
        deleted.append(file)
    plans = expired_plans(table, now, now)
    return deleted + [f"{PLANS_FOLDER}/{plan.plan_id}" for plan in plans if delete_plans(table, [plan])]
