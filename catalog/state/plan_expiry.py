"""Deletion of stored plans that nobody works on any more."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.state.plan_claims import claimed_groups, last_work, read_group_state
from catalog.state.plan_files import PLAN_ENDING, PLANS_FOLDER, StoredPlan, parse_plan, plan_ids
from catalog.state.state_files import Missing, Unreadable, read
from catalog.table.managed_table import ManagedTable

_ADVICE = "A vacuum deletes plans that it can read only; delete the file and the folder beside it."


@dataclass(frozen=True)
class ExpiredPlan:
    """A plan to delete.

    Attributes:
        plan_id: its id.
        files: its files and folders, relative to the state folder, in the order of deletion; that of the plan itself
            comes last.
    """

    plan_id: str
    files: tuple[str, ...]


def expired_plans(table: ManagedTable, before: int, now: int) -> list[ExpiredPlan]:
    """Returns the plans that were made before a time and on which nobody has worked since.

    A plan that cannot be read stays.

    Args:
        table: the table.
        before: epoch milliseconds.
        now: epoch milliseconds.
    """
    plans = (read(table, f"{PLANS_FOLDER}/{plan_id}{PLAN_ENDING}", parse_plan, _ADVICE) for plan_id in plan_ids(table))
    readable = (plan for plan in plans if not isinstance(plan, (Missing, Unreadable)))
    return [
        ExpiredPlan(plan.plan_id, _files(table, plan))
        for plan in readable
        if plan.created_at < before and not _is_in_use(table, plan, before, now)
    ]


def delete_plan(table: ManagedTable, plan: ExpiredPlan) -> None:
    """Deletes a plan. If that is interrupted, the plan is still there, cannot be read, and is deleted the next time.

    Args:
        table: the table.
        plan: the plan.
    """
    for file in plan.files:
        table.delete_state(file)


def _files(table: ManagedTable, plan: StoredPlan) -> tuple[str, ...]:
    folders = (f"{plan.folder}/runs", f"{plan.folder}/groups", plan.folder)
    below = tuple(f"{folder}/{name}" for folder in folders for name in table.list_state(folder))
    # Folders are empty by then.
    return (*below, *folders, f"{plan.folder}{PLAN_ENDING}")


def _is_in_use(table: ManagedTable, plan: StoredPlan, before: int, now: int) -> bool:
    # The groups at the end are probably those that were done last.
    for group_id in sorted(claimed_groups(table, plan), reverse=True):
        state = read_group_state(table, plan, group_id, now)
        if state is not None and last_work(state) >= before:
            return True
    return False
