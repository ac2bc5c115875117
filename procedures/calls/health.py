"""``CALL use.health``: the score of a table's health, its parts, and what mends them."""

from __future__ import annotations

from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import HealthRow
from procedures.insight.health.health import Diagnosis, diagnosis_of
from procedures.insight.health.score import SCALES, Part
from procedures.process.application import application


def health(call: Call, table: TableName) -> list[HealthRow]:
    """Scores the health of a table from 0 to 100, and says what each part costs and what mends it; reads metadata only.

    Returns:
        A row with the score, and a row for each part, the worst first.

    Raises:
        UseError: the table does not exist.
    """
    return health_rows(diagnosis_of(ManagedTable.find(call.spark, table), application().clock))


def health_rows(diagnosis: Diagnosis) -> list[HealthRow]:
    """Returns the score with the first step, then the parts, the worst first.

    Args:
        diagnosis: of a table.
    """
    parts, steps = diagnosis.parts, diagnosis.steps
    first = steps[0].statement if steps else None
    total = HealthRow("total", diagnosis.score, "points", None, sum(part.lost for part in parts), None, first)
    ordered = sorted(parts, key=lambda part: -part.lost)
    return [total, *(_row(part, diagnosis.statement_for(part)) for part in ordered)]


def _row(part: Part, advice: str | None) -> HealthRow:
    scale = SCALES[part.name]
    return HealthRow(part.name, part.value, scale.unit, scale.fine, part.lost, part.cost_bytes, advice)


HEALTH = operation(health)
