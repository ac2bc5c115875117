"""``CALL use.cancel``: asks a run of this process to stop."""

from __future__ import annotations

from typing import Annotated

from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, operation
from procedures.declare.result_rows import CancelRow
from procedures.process.application import application


def cancel(
    _: Call,
    id: Annotated[str, Constraint(not_blank="the id of a run")],  # noqa: A002, as SQL names it
) -> list[CancelRow]:
    """Asks a run to stop at the next boundary between groups. Committed groups stay.

    Args:
        id: The run's id, as use.status shows it.

    Raises:
        UnknownNameError: no live run has this id.
    """
    run = application().runs.cancel(id.strip())
    return [CancelRow(run.run_id, run.table, "stopping")]


CANCEL = operation(cancel)
