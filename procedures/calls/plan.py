"""``CALL use.plan``: groups of files whose rewrite pays off, each of which another process may execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.errors import InvalidArgumentError
from catalog.jvm.session import described_jobs
from catalog.pruning.row_predicate import RowPredicate
from catalog.settings.strategy_options import DEFAULT_FILE_BYTES
from catalog.state.plan_files import StoredPlan, new_plan_id, store_plan
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import ShownRow
from procedures.groups.group import Concatenate
from procedures.groups.plan import Plan
from procedures.process.application import application
from procedures.selection.stored_groups import stored_group
from procedures.selection.table_plan import PlanSettings, column_names, table_plan


@dataclass(frozen=True)
class PlanRow(ShownRow):
    """A group of a consolidation plan.

    Attributes:
        plan_id: id of the stored plan; None if the plan was not stored.
        group_id: number of the group, from 1.
        reason: ``OVERLAP``, ``OVERLAP_CUT`` for a part of a set that is too large for one group, ``SMALL`` or
            ``LARGE``.
        revision_id: revision of the files; 0 for files that are not indexed.
        partition: values of the partition columns.
        files: files that the group reads.
        bytes: their bytes.
        expected_files: files that it is expected to write.
        depth_before: maximum number of files of the set that contain one point.
        depth_after: the same when all groups of the set are rewritten.
        message: one-sentence summary.
    """

    plan_id: str | None
    group_id: int
    reason: str
    revision_id: int
    partition: str
    files: int
    bytes: int
    expected_files: int
    depth_before: int
    depth_after: int
    message: str


def _settings(size: int, columns: str | None, where: str | None) -> PlanSettings:
    if size < 1:
        raise InvalidArgumentError.of("max_file_bytes", size, "a whole number of at least 1")
    if columns is not None:
        column_names(columns)
    return PlanSettings(size, columns, None if where is None else RowPredicate.parse("where", where))


def _validate(arguments: Mapping[str, Any]) -> None:
    _settings(arguments["max_file_bytes"], arguments["columns"], arguments["where"])


def plan(
    call: Call,
    table: TableName,
    *,
    max_file_bytes: int = DEFAULT_FILE_BYTES,
    columns: str | None = None,
    where: str | None = None,
    store: bool = False,
) -> list[PlanRow]:
    """Plans from metadata which files to rewrite together: files that overlap, small ones, and large ones to divide. A
    stored plan is executed by use.optimize, group by group, in any number of processes at once.

    Args:
        max_file_bytes: Bytes that a file should have.
        columns: Columns by whose ranges files overlap, separated by commas; the indexed ones by default.
        where: Plans only files that may contain rows that match this predicate.
        store: Stores the plan below the table, for use.optimize.

    Returns:
        A row per group, with the id of the plan if it is stored.

    Raises:
        UseError: an argument is invalid, or nothing can be written below the table.
    """
    settings = _settings(max_file_bytes, columns, where)
    of_table = ManagedTable.find(call.spark, table)
    snapshot = of_table.snapshot()
    if store:
        of_table.check_writable()
    with described_jobs(call.spark, f"USE plan: {of_table.name}"):
        made = table_plan(snapshot, settings)
        plan_id = _store(of_table, made, snapshot.table_id, settings.max_file_bytes) if store else None
    return list(_rows(made, plan_id))


def _store(table: ManagedTable, plan: Plan, table_id: str, max_file_bytes: int) -> str:
    """Stores a plan below its table; returns its id."""
    created_at = application().clock.now()
    header = StoredPlan(new_plan_id(), table_id, plan.version, created_at, max_file_bytes, 0, first_groups=())
    return store_plan(table, header, map(stored_group, plan.groups)).plan_id


def _rows(plan: Plan, plan_id: str | None) -> Iterator[PlanRow]:
    for group in plan.groups:
        assert isinstance(group, Concatenate)
        assert group.plan_group is not None
        assert group.expected is not None
        yield PlanRow(
            plan_id,
            group.plan_group,
            group.reason,
            group.revision_id,
            group.expected.partition,
            len(group.files),
            group.bytes,
            group.expected.files,
            group.expected.depth_before,
            group.expected.depth_after,
            group.note,
        )


PLAN = operation(plan, validate=_validate)
