"""``CALL use.resume``: ends a suspension."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.properties.optimization_properties import effective_type
from catalog.state.automation import SCHEDULED
from catalog.state.suspension import resume
from catalog.table.managed_table import ManagedTable
from procedures.declaration import Call, Parameter, Procedure
from procedures.service.service import RESUMED, CatalogChange, notify

RESULT = "table string, state string, message string"


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    was_suspended = resume(table)
    notify(CatalogChange(RESUMED, table.name, table.location))
    state = SCHEDULED if effective_type(table.snapshot().configuration) is not None else "idle"
    message = (
        "Automatic optimization follows the table's properties again." if was_suspended else "It was not suspended."
    )
    return call.spark.createDataFrame([(table.name, state, message)], RESULT)


RESUME = Procedure(
    "resume",
    "Ends the suspension of a table.",
    (Parameter("table", "STRING", "Table name, delta.`path` or path."),),
    RESULT,
    _run,
)
