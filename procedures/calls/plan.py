"""``CALL use.plan``: groups of files whose rewrite pays off, each of which another process may execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.errors import InvalidArgumentError
from catalog.jvm.session import described_jobs
from catalog.pruning.row_predicate import RowPredicate
from catalog.state.plan_files import StoredGroup, StoredPlan, new_plan_id, store_plan
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import PlanRow
from procedures.process.application import application
from procedures.selection.step_consolidation import MAX_FILE_BYTES
from procedures.selection.table_plan import PlannedGroup, PlanSettings, column_names, planned_groups


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
    max_file_bytes: int = MAX_FILE_BYTES,
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
    found = ManagedTable.find(call.spark, table)
    snapshot = found.snapshot()
    if store:
        found.check_writable()
    with described_jobs(call.spark, f"USE plan: {found.name}"):
        groups = planned_groups(snapshot, settings)
        if not store:
            return [_row(None, group) for group in groups]
        rows: list[PlanRow] = []
        plan_id = new_plan_id()

        def stored() -> Iterator[StoredGroup]:
            for group in groups:
                rows.append(_row(plan_id, group))
                yield group.stored

        created_at = application().clock.now()
        stored_plan = StoredPlan(
            plan_id, snapshot.table_id, snapshot.version, created_at, settings.max_file_bytes, 0, first_groups=()
        )
        store_plan(found, stored_plan, stored())
    return rows


def _row(plan_id: str | None, group: PlannedGroup) -> PlanRow:
    stored = group.stored
    return PlanRow(
        plan_id,
        stored.group_id,
        stored.reason,
        stored.revision_id,
        stored.partition,
        len(stored.paths),
        stored.bytes,
        stored.files_out,
        stored.depth_before,
        stored.depth_after,
        group.message,
    )


PLAN = operation(plan, validate=_validate)
