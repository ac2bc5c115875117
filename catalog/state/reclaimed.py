"""The oldest version that a reclamation leaves, written below ``_use/`` before it deletes any file."""

from __future__ import annotations

import json
from dataclasses import dataclass

from catalog.errors import ProtectionError, VersionError
from catalog.state.protection import protections
from catalog.state.state_files import Missing, Unreadable, parse, read
from catalog.table.managed_table import ManagedTable

RECLAIMED_FILE = "reclaimed.json"
_MOST_VERSION = 2**63 - 1
_ADVICE = "Time travel to versions that were reclaimed fails with an error of Delta. The next purge replaces the file."


@dataclass(frozen=True)
class Reclaimed:
    """The record of a reclamation.

    Attributes:
        table_id: Delta's metadata id; another table may be at the place now.
        oldest: the oldest version left, apart from protected ones.
        at: epoch milliseconds.
    """

    table_id: str
    oldest: int
    at: int


def parse_reclaimed(text: str) -> Reclaimed | Unreadable:
    """Returns the record in a file's text, or why there is none; total."""
    return parse(
        text,
        lambda fields: Reclaimed(
            fields.text("table_id"), fields.whole_number("oldest", most=_MOST_VERSION), fields.whole_number("at")
        ),
    )


def oldest_left(table: ManagedTable, table_id: str) -> int:
    """The oldest version that was not reclaimed, apart from protected ones; 0 if nothing was.

    Args:
        table: the table.
        table_id: Delta's metadata id of the newest version.
    """
    state = read(table, RECLAIMED_FILE, parse_reclaimed, _ADVICE)
    return state.oldest if isinstance(state, Reclaimed) and state.table_id == table_id else 0


def record_reclaimed(table: ManagedTable, table_id: str, oldest: int, now: int) -> int:
    """Records that versions are going to be reclaimed, before the first file is deleted.

    Args:
        table: the table.
        table_id: Delta's metadata id of the newest version.
        oldest: the oldest version that is left, apart from protected ones.
        now: epoch milliseconds.

    Returns:
        The oldest version left, which never goes down.
    """
    before = oldest_left(table, table_id)
    if oldest > before:
        text = json.dumps({"table_id": table_id, "oldest": oldest, "at": now}, separators=(",", ":"))
        table.write_state(RECLAIMED_FILE, text)
    return max(oldest, before)


def check_not_reclaimed(table: ManagedTable, version: int | None, besides: str | None = None) -> None:
    """Refuses a version that was reclaimed.

    Args:
        table: the table.
        version: the version; None for a time before the log begins.
        besides: name of a protection that does not count, because it is being made. It needs certainty: without it, a
            version passes if nobody can tell.

    Raises:
        VersionError: it was reclaimed.
        ProtectionError: with ``besides``, a file cannot be read.
    """
    record = read(table, RECLAIMED_FILE, parse_reclaimed, _ADVICE)
    if isinstance(record, Unreadable) and besides is not None:
        raise ProtectionError.uncertain(f"{table.state_folder}/{RECLAIMED_FILE}", str(record))
    if isinstance(record, (Missing, Unreadable)) or record.table_id != table.state().facts().table_id:
        return
    oldest = record.oldest
    if oldest == 0 or (version is not None and version >= oldest):
        return
    try:
        protected = [protection for protection in protections(table) if protection.name != besides]
    except ProtectionError:
        if besides is not None:
            raise
        # Any version may be protected; Delta finds out whether its files are there.
        return
    if version in [protection.version for protection in protected]:
        return
    raise VersionError.reclaimed(table.name, version, oldest, [f"{p.version} ({p.name})" for p in protected])
