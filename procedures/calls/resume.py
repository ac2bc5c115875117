"""``CALL use.resume``: ends a suspension."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.properties.optimization_properties import effective_type
from catalog.state.automation import SCHEDULED
from catalog.state.suspension import resume
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import ResumeRow, data_frame_of, ddl_of
from procedures.process.application import application
from procedures.process.running_services import RESUMED, CatalogChange


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    was_suspended = resume(table)
    application().services.notify(CatalogChange(RESUMED, table.name, table.location))
    state = SCHEDULED if effective_type(table.snapshot().configuration) is not None else "idle"
    message = (
        "Automatic optimization follows the table's properties again." if was_suspended else "It was not suspended."
    )
    return data_frame_of(call.spark, ResumeRow, [ResumeRow(table.name, state, message)])


RESUME = Procedure(
    "resume",
    "Ends the suspension of a table.",
    (Parameter("table", "STRING", "Table name, delta.`path` or path."),),
    ddl_of(ResumeRow),
    _run,
)
