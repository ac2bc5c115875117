"""A table whose automatic optimization is suspended: a file below ``_use/``, which every process sees.

The existence of the file suspends the table; its text is for people. See decision 047.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.epoch_millis import moment
from catalog.errors import WriteDeniedError
from catalog.jvm.raised_errors import file_errors
from catalog.locations import STATE_FOLDER
from catalog.state.lease import this_process
from catalog.state.state_files import Missing, StateFolder, Unreadable, access_problem, parse, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from catalog.table.managed_table import ManagedTable

SUSPENSION_FILE = "suspended.json"
_ADVICE = "The table stays suspended; CALL use.resume ends that, and deletes the file."


@dataclass(frozen=True)
class Suspension:
    """A suspension.

    Attributes:
        since: epoch milliseconds; 0 if the file does not record it.
        by: the process that requested it; ``unknown`` if the file does not record it.
        problem: why the file cannot be read, '' when it can.
    """

    since: int
    by: str
    problem: str = ""

    @property
    def note(self) -> str:
        """The same for people, in one line."""
        if self.problem:
            return f"{SUSPENSION_FILE} cannot be read ({self.problem}): the table is suspended until CALL use.resume"
        since = moment(self.since)
        return f"suspended by {self.by}" + (f" at {since.isoformat(timespec='seconds')}" if since else "")


def parse_suspension(text: str) -> Suspension | Unreadable:
    """Returns the suspension in a file's text, or why there is none; total."""
    return parse(text, lambda fields: Suspension(fields.whole_number("since"), fields.text("by")))


def is_suspended(spark: SparkSession, location: str) -> bool:
    """Whether the table at a location is suspended, at the cost of one file lookup."""
    from catalog.jvm.log_probe import exists

    return exists(spark, location, f"{STATE_FOLDER}/{SUSPENSION_FILE}")


def suspension_of(table: StateFolder) -> Suspension | None:
    """The table's suspension, None when it is not suspended; a file that cannot be read suspends too."""
    suspension = read(table, SUSPENSION_FILE, parse_suspension, _ADVICE)
    if isinstance(suspension, Missing):
        return None
    return Suspension(0, "unknown", str(suspension)) if isinstance(suspension, Unreadable) else suspension


def suspend(table: ManagedTable, now: int) -> Suspension:
    """Suspends the table; one that is suspended stays as it is.

    Raises:
        WriteDeniedError: the file cannot be written.
    """
    made = {"since": now, "by": this_process()}
    try:
        table.create_state(SUSPENSION_FILE, json.dumps(made))
    except file_errors() as error:
        raise _denied(table, "written", "The table is not suspended", access_problem(error)) from error
    return suspension_of(table) or Suspension(now, this_process())


def resume(table: ManagedTable) -> bool:
    """Ends the suspension; False when there was none.

    Raises:
        WriteDeniedError: the file cannot be deleted.
    """
    there = suspension_of(table) is not None
    problem = "the file system keeps it"
    try:
        table.delete_state(SUSPENSION_FILE)
    except file_errors() as error:
        problem = access_problem(error)
    # Some file systems report a deletion that they did not make.
    if there and suspension_of(table) is not None:
        raise _denied(table, "deleted", "The table stays suspended", problem)
    return there


def _denied(table: ManagedTable, verb: str, consequence: str, problem: str) -> WriteDeniedError:
    path = f"{table.state_folder}/{SUSPENSION_FILE}"
    return WriteDeniedError(f"{path} cannot be {verb} ({problem}). {consequence}: check the rights there.")
