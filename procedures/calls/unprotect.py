"""``CALL use.unprotect``: ends the protection of a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.state.protection import check_name, unprotect
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import UnprotectRow, data_frame_of, ddl_of


def _validate(arguments: Mapping[str, Any]) -> None:
    check_name(arguments["name"])


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    ended = unprotect(table, call["name"])
    version = None if ended is None else ended.version
    what = "A version that could not be read from its file" if version is None else f"Version {version}"
    message = f"{what} is no longer protected as '{call['name']}': the next purge or vacuum may delete its files."
    return data_frame_of(call.spark, UnprotectRow, [UnprotectRow(call["name"], version, message)])


UNPROTECT = Procedure(
    "unprotect",
    "Ends the protection of a version.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter("name", "STRING", "Name of the protection."),
    ),
    ddl_of(UnprotectRow),
    _run,
    _validate,
)
