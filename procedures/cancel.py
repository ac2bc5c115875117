"""``CALL use.cancel``: asks a run of this process to stop."""

from __future__ import annotations

from pyspark.sql import DataFrame

from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure

RESULT = "run_id string, table string, state string"


def _run(call: Call) -> DataFrame:
    run = application().runs.cancel(call["id"].strip())
    return call.spark.createDataFrame([(run.run_id, run.table, "stopping")], RESULT)


CANCEL = Procedure(
    "cancel",
    "Asks a run to stop at the next boundary between groups; what it committed stays.",
    (Parameter("id", "STRING", "The run's id, as use.status shows it."),),
    RESULT,
    _run,
)
