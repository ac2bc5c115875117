"""``CALL use.cancel``: asks a run of this process, or of another one, to stop."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pyspark.sql import SparkSession

from catalog.errors import NotSupportedError, UnknownNameError
from catalog.jvm.log_probe import qualified
from catalog.jvm.metastore import is_shown
from catalog.state.cancel_requests import can_be_asked, request_cancel
from catalog.state.lease import RENEWAL_SECONDS, Lease, leases_of, this_process
from catalog.state.leased_tables import leased_tables
from catalog.system_tables.system_table import error_text
from catalog.table.managed_table import ManagedTable, check_rights_of
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, operation
from procedures.declare.result_rows import ShownRow
from procedures.declare.runs import Run
from procedures.process.application import application

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CancelRow(ShownRow):
    """A run that was asked to stop.

    Attributes:
        run_id: the run's id.
        table: full name.
        state: ``stopping``; ``requested`` for a run of another process.
        message: who runs it, and when it sees the request; None for a run of this process.
    """

    run_id: str
    table: str
    state: str
    message: str | None = None


def cancel(
    call: Call,
    id: Annotated[str, Constraint(not_blank="the id of a run")],  # noqa: A002, as SQL names it
    table: str | None = None,
) -> list[CancelRow]:
    """Asks a run to stop at the next boundary between groups, in whichever process it is. Committed groups stay.

    Args:
        id: The run's id, as use.status shows it.
        table: The table that it works on; needed for runs of other processes if the metastore does not list the table.

    Raises:
        UnknownNameError: no live run has this id.
        NotSupportedError: another process has it, and cannot be asked to stop it.
        WriteDeniedError: the catalog denies changes of the table, or another process has the run, and the request
            cannot be written.
    """
    spark, runs, run_id = call.spark, application().runs, id.strip()
    found = None if table is None else ManagedTable.find(spark, table)
    place = None if found is None else qualified(spark, found.location)

    def is_wanted(run: Run) -> bool:
        return place is None or qualified(spark, run.location) == place

    live = {run.run_id: run.table for run in runs.live(is_wanted) if is_shown(spark, run.table)}
    if run_id in live:
        check_rights_of(spark, live[run_id])
        run = runs.cancel(run_id)
        return [CancelRow(run.run_id, run.table, "stopping")]
    seen = set(live)
    now = application().clock.now()
    for held, lease in _leases(spark, found, now):
        if lease.run_id == run_id:
            return [_requested(held, lease, now)]
        seen.add(lease.run_id)
    raise UnknownNameError.of("run", run_id, sorted(seen))


def _leases(spark: SparkSession, found: ManagedTable | None, now: int) -> Iterator[tuple[ManagedTable, Lease]]:
    """The leases on a table, or on all tables of the metastore that can be read."""
    if found is not None:
        yield from ((found, lease) for lease in leases_of(found, now))
        return
    for known in leased_tables(spark, now):
        try:
            table = ManagedTable.find(spark, known.full_name)
            leases = leases_of(table, now)
        except Exception as error:  # noqa: BLE001 - the run may be one of another table
            logger.warning("The search for a run to cancel leaves out %s: %s", known.full_name, error_text(error))
            continue
        yield from ((table, lease) for lease in leases)


def _requested(table: ManagedTable, lease: Lease, now: int) -> CancelRow:
    """Asks the holder of a lease.

    Raises:
        NotSupportedError: it does not look for requests.
        WriteDeniedError: the request cannot be written.
    """
    if lease.current is None or not can_be_asked(lease.run_id):
        raise NotSupportedError(
            f"Run {lease.run_id} on {table.name} by {lease.holder} cannot be cancelled from another process: it is "
            "maintenance, or by an older version. It ends by itself, or with its process."
        )
    table.check_rights()
    request_cancel(table, lease.run_id, now, this_process())
    message = f"{lease.holder} sees the request within {RENEWAL_SECONDS} seconds, and stops after the current groups"
    return CancelRow(lease.run_id, table.name, "requested", message)


CANCEL = operation(cancel)
