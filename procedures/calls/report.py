"""``CALL use.report``: a page about a table, with pictures, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError, WriteDeniedError
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import ReportRow, data_frame_of, ddl_of
from procedures.insight.health.health import health_of
from procedures.insight.report.facts import gather
from procedures.insight.report.lake import gather_lake, lake_page
from procedures.insight.report.page import page
from procedures.process.application import application

_MOST_AXES = 2
_BEGINNING = b"<!doctype html>"


def _validate(arguments: Mapping[str, Any]) -> None:
    columns, out = arguments["columns"], arguments["out"]
    if columns is not None and arguments["table"] is None:
        raise InvalidArgumentError.missing("table", "columns are those of a table")
    if columns is not None and not (0 < len(columns) <= _MOST_AXES and len(set(columns)) == len(columns)):
        raise InvalidArgumentError.of("columns", f"array({', '.join(columns)})", "one or two indexed columns")
    if out is not None:
        _check_file(out)


def _check_file(out: str) -> None:
    """Refuses what is no file, and any file other than a page: statements come from users of a server, too."""
    path = Path(out)
    try:
        is_place = bool(out.strip()) and "\0" not in out and not path.is_dir() and path.absolute().parent.is_dir()
        is_other = is_place and path.exists() and not _is_page(path)
    except OSError:  # Such as a name that is too long.
        is_place = is_other = False
    if not is_place:
        raise InvalidArgumentError.of("out", out, "a file on the driver, in a folder that exists")
    if is_other:
        raise InvalidArgumentError.of("out", out, "a new file, or an HTML page to replace; this is another file")


def _is_page(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)).lower() in (_BEGINNING, b"")
    except OSError:
        return False


def _page(call: Call) -> tuple[str, int | None]:
    """The page, and the score of the table or the lowest one of all tables."""
    app = application()
    if call["table"] is None:
        lines = gather_lake(call.spark, app.automations, app.clock, partial(health_of, clock=app.clock))
        scores = [line.health for line in lines if line.health is not None]
        return lake_page(lines, app.clock.now()), min(scores, default=None)
    table, columns = ManagedTable.find(call.spark, call["table"]), call["columns"]
    facts = gather(table, app.clock, None if columns is None else tuple(columns))
    return page(facts), facts.score


def _run(call: Call) -> DataFrame:
    (text, score), out = _page(call), call["out"]
    if out is None:
        return data_frame_of(call.spark, ReportRow, [ReportRow(None, len(text.encode()), score, text)])
    path = Path(out).absolute()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WriteDeniedError(f"{path} cannot be written: {error.strerror or error}.") from error
    row = ReportRow(str(path), len(text.encode()), score, None)
    return data_frame_of(call.spark, ReportRow, [row])


REPORT = Procedure(
    "report",
    "Makes a page about a table with its health, index, files and optimizations, or about all tables; reads metadata "
    "only.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path; all tables by default.", None),
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
            not_blank="one or two indexed columns",
        ),
    ),
    ddl_of(ReportRow),
    _run,
    _validate,
)
