"""``CALL use.health``: the score of a table's health, its parts, and what mends them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure
from procedures.result_rows import HealthRow, data_frame_of, ddl_of
from procedures.table_health.health import health_of
from procedures.table_health.score import SCALES, Part, score_of


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    parts = health_of(table, application().clock)
    total = HealthRow("total", score_of(parts), "points", None, sum(part.lost for part in parts), None, None)
    ordered = sorted(parts, key=lambda part: -part.lost)
    return data_frame_of(call.spark, HealthRow, [total, *map(_row, ordered)])


def _row(part: Part) -> HealthRow:
    scale = SCALES[part.name]
    advice = part.advice if part.lost else None
    return HealthRow(part.name, part.value, scale.unit, scale.fine, part.lost, part.cost_bytes, advice)


HEALTH = Procedure(
    "health",
    "Scores the health of a table from 0 to 100, and says what each part costs and what mends it; reads metadata only.",
    (Parameter("table", "STRING", "Table name, delta.`path` or path."),),
    ddl_of(HealthRow),
    _run,
)
