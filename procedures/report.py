"""``CALL use.report``: a page about a table, with pictures, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError, WriteDeniedError
from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure
from procedures.result_rows import ReportRow, data_frame_of, ddl_of
from procedures.table_report.facts import gather
from procedures.table_report.page import page

_MOST_AXES = 2


def _validate(arguments: Mapping[str, Any]) -> None:
    columns, out = arguments["columns"], arguments["out"]
    if columns is not None and not (0 < len(columns) <= _MOST_AXES and len(set(columns)) == len(columns)):
        raise InvalidArgumentError.of("columns", f"array({', '.join(columns)})", "one or two indexed columns")
    if out is not None and (not out.strip() or Path(out).is_dir() or not Path(out).absolute().parent.is_dir()):
        raise InvalidArgumentError.of("out", out, "a file on the driver, in a folder that exists")


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    columns = call["columns"]
    facts = gather(table, application().clock, None if columns is None else tuple(columns))
    text, out = page(facts), call["out"]
    if out is None:
        return data_frame_of(call.spark, ReportRow, [ReportRow(None, len(text.encode()), facts.score, text)])
    path = Path(out).absolute()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WriteDeniedError(f"{path} cannot be written: {error.strerror or error}.") from error
    row = ReportRow(str(path), len(text.encode()), facts.score, None)
    return data_frame_of(call.spark, ReportRow, [row])


REPORT = Procedure(
    "report",
    "Makes a page about a table with its health, index, files and optimizations; reads metadata only.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter(
            "out",
            "STRING",
            "File on the driver to write, such as report.html; a column of the result by default.",
            None,
        ),
        Parameter(
            "columns",
            "ARRAY<STRING>",
            "The one or two indexed columns over which cubes are drawn; the first two.",
            None,
        ),
    ),
    ddl_of(ReportRow),
    _run,
    _validate,
)
