"""``CALL use.cancel``: asks a run of this process to stop."""

from __future__ import annotations

from pyspark.sql import DataFrame

from procedures.declaration import Call, Parameter, Procedure
from procedures.optimizer.runs import RUNS

RESULT = "run_id string, table string, state string"


def _run(call: Call) -> DataFrame:
    run = RUNS.cancel(call["id"].strip())
    return call.spark.createDataFrame([(run.run_id, run.table, "stopping")], RESULT)


CANCEL = Procedure(
    "cancel",
    "Asks a run to stop at the next boundary between groups. Committed groups stay.",
    (Parameter("id", "STRING", "The run's id, as use.status shows it."),),
    RESULT,
    _run,
)
