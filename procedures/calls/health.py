"""``CALL use.health``: the score of a table's health, its parts, and what mends them."""

from __future__ import annotations

from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.insight.health.diagnosis import HealthRow, health_rows
from procedures.insight.health.health import diagnosis_of
from procedures.process.application import application


def health(call: Call, table: TableName) -> list[HealthRow]:
    """Scores the health of a table from 0 to 100, and says what each part costs and what mends it; reads metadata only.

    Returns:
        A row with the score, and a row for each part, the worst first.

    Raises:
        UseError: the table does not exist.
    """
    return health_rows(diagnosis_of(ManagedTable.find(call.spark, table), application().clock))


HEALTH = operation(health)
