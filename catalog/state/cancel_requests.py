"""Requests to runs of other processes to stop: a small file below ``_use/`` for each, which the run looks for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.errors import WriteDeniedError
from catalog.jvm.raised_errors import file_errors
from catalog.state.state_files import NOT_ACCESSIBLE, Missing, Unreadable, access_problem, parse, read

if TYPE_CHECKING:
    from catalog.table.managed_table import ManagedTable

CANCELS_FOLDER = "cancels"
# The id becomes the name of a file, and leases have it from files that anybody may have written.
_RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_ADVICE = "The run stops at its next boundary between groups, and deletes the file."


@dataclass(frozen=True)
class CancelRequest:
    """A request to a run to stop.

    Attributes:
        at: epoch milliseconds; 0 if the file does not record it.
        by: host and process that asked; ``unknown`` if the file does not record it.
    """

    at: int
    by: str


def parse_cancel_request(text: str) -> CancelRequest | Unreadable:
    """Returns the request in a file's text, or why there is none; total."""
    return parse(text, lambda fields: CancelRequest(fields.whole_number("at"), fields.text("by")))


def can_be_asked(run_id: str) -> bool:
    """Whether a file can have the name of a run."""
    return _RUN_ID.fullmatch(run_id) is not None


def request_cancel(table: ManagedTable, run_id: str, now: int, by: str) -> None:
    """Asks a run on a table to stop at its next boundary between groups.

    Args:
        table: the table.
        run_id: the run; see ``can_be_asked``.
        now: epoch milliseconds.
        by: host and process that ask.

    Raises:
        WriteDeniedError: the file cannot be written.
    """
    try:
        table.write_state(_file(run_id), json.dumps({"at": now, "by": by}))
    except file_errors() as error:
        raise WriteDeniedError(
            f"{table.state_folder}/{_file(run_id)} cannot be written ({access_problem(error)}). The run was not asked "
            "to stop: check the rights there."
        ) from error


def cancel_request(table: ManagedTable, run_id: str) -> CancelRequest | None:
    """Returns the request to a run; None if there is none. A file that cannot be parsed is a request, too."""
    request = read(table, _file(run_id), parse_cancel_request, _ADVICE)
    if isinstance(request, Unreadable):
        return None if request.code == NOT_ACCESSIBLE else CancelRequest(0, "unknown")
    return None if isinstance(request, Missing) else request


def delete_request(table: ManagedTable, run_id: str) -> None:
    """Deletes the request to a run; a missing one is no error."""
    table.delete_state(_file(run_id))


def delete_requests(table: ManagedTable) -> None:
    """Deletes all requests on a table, on which no run is left."""
    for name in table.list_state(CANCELS_FOLDER):
        table.delete_state(f"{CANCELS_FOLDER}/{name}")


def _file(run_id: str) -> str:
    return f"{CANCELS_FOLDER}/{run_id}.json"
