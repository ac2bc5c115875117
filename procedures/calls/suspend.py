"""``CALL use.suspend``: blocks automatic optimization of a table in every process until it is resumed."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.state.suspension import suspend, suspension_of
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import SuspendRow, data_frame_of, ddl_of
from procedures.process.application import application
from procedures.process.running_services import SUSPENDED, CatalogChange


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    earlier = suspension_of(table)
    suspension = suspend(table, application().clock.now())
    application().services.notify(CatalogChange(SUSPENDED, table.name, table.location))
    message = (
        f"It was already suspended by {suspension.by}."
        if earlier is not None
        else "Automatic optimization and manual triggers are off; CALL use.optimize still works."
    )
    return data_frame_of(call.spark, SuspendRow, [SuspendRow(table.name, "suspended", message)])


SUSPEND = Procedure(
    "suspend",
    "Suspends automatic optimization of a table in every process. A run in progress stops after the current group.",
    (Parameter("table", "STRING", "Table name, delta.`path` or path."),),
    ddl_of(SuspendRow),
    _run,
)
