"""Deletion of stored plans on which no run works any more."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.state.plan_claims import claimed_groups, last_work, read_claim
from catalog.state.plan_files import (
    PLAN_ENDING,
    PLANS_FOLDER,
    WRITING_ENDING,
    StoredPlan,
    plan_ids,
    read_plan,
    unfinished_plan_ids,
    writing_began,
)
from catalog.state.state_files import Missing, Unreadable, access_problem
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

# No plan takes that long to write.
_LONGEST_WRITING_MILLIS = 24 * 60 * 60 * 1000
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
    """Returns the plans that were made before a time and on which no run has worked since.

    Parts of plans whose writing was interrupted are included. A plan that cannot be read stays, and so does one with a
    claim that cannot be read: its file may be being written.

    Args:
        table: the table.
        before: epoch milliseconds.
        now: epoch milliseconds.
    """
    plans = (read_plan(table, plan_id, _ADVICE) for plan_id in plan_ids(table))
    readable = (plan for plan in plans if not isinstance(plan, (Missing, Unreadable)))
    expired = [
        ExpiredPlan(plan.plan_id, _files(table, plan))
        for plan in readable
        if plan.created_at < before and not _is_in_use(table, plan, before, now)
    ]
    return expired + list(_interrupted_plans(table, min(before, now - _LONGEST_WRITING_MILLIS)))


def _interrupted_plans(table: ManagedTable, before: int) -> Iterator[ExpiredPlan]:
    complete = set(plan_ids(table))
    for plan_id in unfinished_plan_ids(table):
        began = writing_began(table, plan_id, _ADVICE)
        if isinstance(began, int) and began < before:
            folder = f"{PLANS_FOLDER}/{plan_id}"
            parts = [f"{folder}/{name}" for name in table.list_state(folder)]
            # The process may have been killed after it had written the plan.
            written = [] if plan_id in complete else [*parts, folder]
            yield ExpiredPlan(plan_id, (*written, f"{folder}{WRITING_ENDING}"))


def delete_plans(table: ManagedTable, plans: Iterable[ExpiredPlan]) -> int:
    """Deletes plans. A plan whose files the file system does not delete is logged, and stays.

    Args:
        table: the table.
        plans: the plans.

    Returns:
        The number of files and folders of the deleted plans.
    """
    return sum(len(plan.files) for plan in plans if _is_deleted(table, plan))


def _is_deleted(table: ManagedTable, plan: ExpiredPlan) -> bool:
    try:
        delete_plan(table, plan)
    except (Py4JError, PySparkException, OSError) as error:
        logger.warning("Plan %s of %s was not deleted: %s", plan.plan_id, table.name, access_problem(error))
        return False
    return True


def delete_plan(table: ManagedTable, plan: ExpiredPlan) -> None:
    """Deletes a plan. After an interruption, the plan cannot be executed any more, and the next vacuum deletes it.

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
        claim = read_claim(table, plan, group_id, now)
        if isinstance(claim, Unreadable) or (not isinstance(claim, Missing) and last_work(claim) >= before):
            return True
    return False
