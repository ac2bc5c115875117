"""``fleet``: the tables that the service looks after, in the order in which the budget goes to them, and sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.system_tables.system_table import SystemQuery, SystemTable

FLEET_SCHEMA = (
    "rank int, table string, database string, state string, reason string, cost_bytes bigint, saving_per_day bigint, "
    "saving_per_byte double, is_recorded boolean, waiting_since timestamp_ltz, last_run timestamp_ltz, "
    "last_bytes bigint, predicted_saving bigint, measured_saving bigint, correction double, "
    "budget_bytes bigint, budget_left bigint, "
    "spent_day bigint, spent_week bigint, spent_month bigint, saved_day bigint, saved_week bigint, saved_month bigint"
)


def _rows(query: SystemQuery) -> Iterator[Mapping[str, Any]]:
    yield from query.fleet()


FLEET = SystemTable("fleet", FLEET_SCHEMA, _rows)
