"""``CALL use.resume``: ends a suspension."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.properties.optimization_properties import effective_type
from catalog.state import suspension
from catalog.state.automation import SCHEDULED
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import ShownRow
from procedures.process.application import application
from procedures.process.running_services import RESUMED, CatalogChange


@dataclass(frozen=True)
class ResumeRow(ShownRow):
    """A resumed table.

    Attributes:
        table: full name.
        state: ``scheduled`` or ``idle``.
        message: one-sentence summary.
    """

    table: str
    state: str
    message: str


def resume(call: Call, table: TableName) -> ResumeRow:
    """Ends the suspension of a table.

    Raises:
        UseError: the table does not exist.
    """
    found = ManagedTable.find(call.spark, table)
    found.check_rights()
    was_suspended = suspension.resume(found)
    application().services.notify(CatalogChange(RESUMED, found.name, found.location))
    state = SCHEDULED if effective_type(found.snapshot().settings) is not None else "idle"
    message = (
        "Automatic optimization follows the table's properties again." if was_suspended else "It was not suspended."
    )
    return ResumeRow(found.name, state, message)


RESUME = operation(resume)
