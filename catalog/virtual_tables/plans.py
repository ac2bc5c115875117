"""``<table>.plans``: one row per group of each stored plan, with its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from catalog.clock import SYSTEM_CLOCK
from catalog.epoch_millis import moment
from catalog.errors import InvalidArgumentError, PlanUnreadableError, UnknownNameError
from catalog.jvm.local_rows import local_data_frame
from catalog.state.plan_claims import PLANNED, RUNNING, GroupState, read_group_states
from catalog.state.plan_files import PlanGroups, StoredGroup, StoredPlan, find_plan, plan_ids
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables.virtual_table import VirtualTable

_SCHEMA = (
    "plan_id string, created_at timestamp_ltz, group_id bigint, reason string, revision_id bigint, partition string, "
    "files bigint, bytes bigint, expected_files bigint, depth_before bigint, depth_after bigint, state string, "
    "holder string, run_id string, trigger string, claimed_at timestamp_ltz, finished_at timestamp_ltz, "
    "version bigint, message string"
)


def _rows(table: ManagedTable) -> DataFrame:
    table_id = table.snapshot().table_id
    rows = [row for plan_id in plan_ids(table) for row in _rows_of_plan(table, plan_id, table_id)]
    return local_data_frame(table.spark, rows, _SCHEMA)


def _rows_of_plan(table: ManagedTable, plan_id: str, table_id: str) -> Iterator[tuple[Any, ...]]:
    """The groups of a plan; none of a plan of another table, and one row of a plan that cannot be read."""
    try:
        plan = find_plan(table, plan_id, table_id)
        groups, now = list(PlanGroups(table, plan)), SYSTEM_CLOCK.now()
    except PlanUnreadableError as error:
        yield plan_id, *[None] * 17, error.message
        return
    except (InvalidArgumentError, UnknownNameError):
        return
    states = read_group_states(table, plan, now)
    for group in groups:
        yield _row(plan, group, states.get(group.group_id), now)


def _row(plan: StoredPlan, group: StoredGroup, state: GroupState | None, now: int) -> tuple[Any, ...]:
    shown, message = PLANNED if state is None else state.state, None if state is None else state.reason
    if state is not None and state.state == RUNNING and not state.is_running(now):
        shown, message = PLANNED, f"the claim of {state.holder} has expired"
        state = None
    facts = (
        group.group_id,
        group.reason,
        group.revision_id,
        group.partition,
        len(group.paths),
        group.bytes,
        group.files_out,
        group.depth_before,
        group.depth_after,
    )
    return (plan.plan_id, moment(plan.created_at), *facts, shown, *_claim_columns(state), message)


def _claim_columns(state: GroupState | None) -> tuple[Any, ...]:
    if state is None:
        return (None,) * 6
    times = moment(state.claimed_at), moment(state.finished_at)
    return state.holder, state.run_id, state.trigger, *times, state.version


PLANS = VirtualTable("plans", _SCHEMA, _rows)
