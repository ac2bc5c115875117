"""``CALL use.suspend``: blocks automatic optimization of a table in every process until it is resumed."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.state import suspension
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import ShownRow
from procedures.process.application import application
from procedures.process.running_services import SUSPENDED, CatalogChange


@dataclass(frozen=True)
class SuspendRow(ShownRow):
    """A suspended table.

    Attributes:
        table: full name.
        state: ``suspended``.
        message: one-sentence summary.
    """

    table: str
    state: str
    message: str


def suspend(call: Call, table: TableName) -> SuspendRow:
    """Suspends automatic optimization of a table in every process. A run in progress stops after the current group.

    Raises:
        UseError: the table does not exist.
    """
    found = ManagedTable.find(call.spark, table)
    found.check_rights()
    earlier = suspension.suspension_of(found)
    now = suspension.suspend(found, application().clock.now())
    application().services.notify(CatalogChange(SUSPENDED, found.name, found.location))
    message = (
        f"It was already suspended by {now.by}."
        if earlier is not None
        else "Automatic optimization and manual triggers are off; CALL use.optimize still works."
    )
    return SuspendRow(found.name, "suspended", message)


SUSPEND = operation(suspend)
