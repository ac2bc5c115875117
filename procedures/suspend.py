"""``CALL use.suspend``: keeps automatic optimization off a table, for every process, until it is resumed."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.state.suspension import suspend, suspension_of
from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure
from procedures.result_rows import SuspendRow, data_frame_of, ddl_of
from procedures.service.service import SUSPENDED, Told, tell


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    before = suspension_of(table)
    made = suspend(table, application().clock.now())
    tell(Told(SUSPENDED, table.name, table.location))
    message = (
        f"It was suspended already, by {made.by}."
        if before is not None
        else "Automatic optimization and manual triggers are off; CALL use.optimize still works."
    )
    return data_frame_of(call.spark, SuspendRow, [SuspendRow(table.name, "suspended", message)])


SUSPEND = Procedure(
    "suspend",
    "Suspends automatic optimization of a table, for every process; a run under way ends at the next boundary.",
    (Parameter("table", "STRING", "Table name, delta.`path` or path."),),
    ddl_of(SuspendRow),
    _run,
)
