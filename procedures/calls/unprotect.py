"""``CALL use.unprotect``: ends the protection of a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.state import protection
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import ShownRow


@dataclass(frozen=True)
class UnprotectRow(ShownRow):
    """A protection that was ended.

    Attributes:
        name: of the protection.
        version: the version; None if the file of the protection could not be read.
        message: one-sentence summary.
    """

    name: str
    version: int | None
    message: str


def _validate(arguments: Mapping[str, Any]) -> None:
    protection.check_name(arguments["name"])


def unprotect(call: Call, table: TableName, name: str) -> UnprotectRow:
    """Ends the protection of a version.

    Args:
        name: Name of the protection.

    Raises:
        UseError: there is no protection of this name.
    """
    found = ManagedTable.find(call.spark, table)
    found.check_rights()
    ended = protection.unprotect(found, name)
    version = None if ended is None else ended.version
    what = "A version that could not be read from its file" if version is None else f"Version {version}"
    message = f"{what} is no longer protected as '{name}': the next purge or vacuum may delete its files."
    return UnprotectRow(name, version, message)


UNPROTECT = operation(unprotect, validate=_validate)
