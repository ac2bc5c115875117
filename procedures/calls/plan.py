"""``CALL use.plan``: groups of files whose rewrite pays off, each of which another process may execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError
from catalog.jvm.session import described_jobs
from catalog.pruning.row_predicate import RowPredicate
from catalog.settings.strategy_options import DEFAULT_FILE_BYTES
from catalog.state.plan_files import StoredPlan, new_plan_id, store_plan
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import PlanRow, data_frame_of, ddl_of
from procedures.groups.group import Concatenate
from procedures.groups.plan import Plan
from procedures.process.application import application
from procedures.selection.stored_groups import stored_group
from procedures.selection.table_plan import PlanSettings, column_names, table_plan


def _settings(arguments: Mapping[str, Any]) -> PlanSettings:
    size, columns, where = (arguments[name] for name in ("max_file_bytes", "columns", "where"))
    if size < 1:
        raise InvalidArgumentError.of("max_file_bytes", size, "a whole number of at least 1")
    if columns is not None:
        column_names(columns)
    return PlanSettings(size, columns, None if where is None else RowPredicate.parse("where", where))


def _validate(arguments: Mapping[str, Any]) -> None:
    _settings(arguments)


def _run(call: Call) -> DataFrame:
    settings = _settings(call.arguments)
    table = ManagedTable.find(call.spark, call["table"])
    snapshot = table.snapshot()
    if call["store"]:
        table.check_writable()
    with described_jobs(call.spark, f"USE plan: {table.name}"):
        plan = table_plan(snapshot, settings)
        plan_id = _store(table, plan, snapshot.table_id, settings.max_file_bytes) if call["store"] else None
    return data_frame_of(call.spark, PlanRow, list(_rows(plan, plan_id)))


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


PLAN = Procedure(
    "plan",
    "Plans from metadata which files to rewrite together: files that overlap, small ones, and large ones to divide. A "
    "stored plan is executed by use.optimize, group by group, in any number of processes at once.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter("max_file_bytes", "BIGINT", "Bytes that a file should have.", DEFAULT_FILE_BYTES),
        Parameter(
            "columns",
            "STRING",
            "Columns by whose ranges files overlap, separated by commas; the indexed ones by default.",
            None,
        ),
        Parameter("where", "STRING", "Plans only files that may contain rows that match this predicate.", None),
        Parameter("store", "BOOLEAN", "Stores the plan below the table, for use.optimize.", False),
    ),
    ddl_of(PlanRow),
    _run,
    _validate,
)
