"""``CALL use.cancel``: asks a run of this process to stop."""

from __future__ import annotations

from pyspark.sql import DataFrame

from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import CancelRow, data_frame_of, ddl_of
from procedures.process.application import application


def _run(call: Call) -> DataFrame:
    run = application().runs.cancel(call["id"].strip())
    return data_frame_of(call.spark, CancelRow, [CancelRow(run.run_id, run.table, "stopping")])


CANCEL = Procedure(
    "cancel",
    "Asks a run to stop at the next boundary between groups. Committed groups stay.",
    (Parameter("id", "STRING", "The run's id, as use.status shows it.", not_blank="the id of a run"),),
    ddl_of(CancelRow),
    _run,
)
