"""``CALL use.suspend``: blocks automatic optimization of a table in every process until it is resumed."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.state.lease import now_millis
from catalog.state.suspension import suspend, suspension_of
from catalog.table.managed_table import ManagedTable
from procedures.declaration import Call, Parameter, Procedure
from procedures.service.service import SUSPENDED, CatalogChange, notify

RESULT = "table string, state string, message string"


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    earlier = suspension_of(table)
    suspension = suspend(table, now_millis())
    notify(CatalogChange(SUSPENDED, table.name, table.location))
    message = (
        f"It was already suspended by {suspension.by}."
        if earlier is not None
        else "Automatic optimization and manual triggers are off; CALL use.optimize still works."
    )
    return call.spark.createDataFrame([(table.name, "suspended", message)], RESULT)


SUSPEND = Procedure(
    "suspend",
    "Suspends automatic optimization of a table in every process. A run in progress stops after the current group.",
    (Parameter("table", "STRING", "Table name, delta.`path` or path."),),
    RESULT,
    _run,
)
