"""``CALL use.plan``: groups of files whose rewrite pays off, each of which another process may execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError
from catalog.jvm.session import described_jobs
from catalog.pruning.row_predicate import RowPredicate
from catalog.settings.strategy_options import DEFAULT_FILE_BYTES
from catalog.state.plan_files import StoredGroup, StoredPlan, new_plan_id, store_plan
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import PlanRow, data_frame_of, ddl_of
from procedures.process.application import application
from procedures.selection.table_plan import PlannedGroup, PlanSettings, column_names, planned_groups


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
        groups = planned_groups(snapshot, settings)
        if not call["store"]:
            return data_frame_of(call.spark, PlanRow, [_row(None, group) for group in groups])
        rows: list[PlanRow] = []
        plan_id = new_plan_id()

        def stored() -> Iterator[StoredGroup]:
            for group in groups:
                rows.append(_row(plan_id, group))
                yield group.stored

        created_at = application().clock.now()
        plan = StoredPlan(
            plan_id, snapshot.table_id, snapshot.version, created_at, settings.max_file_bytes, 0, first_groups=()
        )
        store_plan(table, plan, stored())
    return data_frame_of(call.spark, PlanRow, rows)


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
