"""``CALL use.report``: a page about a table, with pictures, as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError
from catalog.jvm.metastore import SESSION_CATALOG
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, operation
from procedures.declare.result_rows import ShownRow
from procedures.insight.health.health import diagnosis_of
from procedures.insight.report.facts import gather
from procedures.insight.report.lake import TableLine, gather_lake, lake_page
from procedures.insight.report.page import page
from procedures.insight.report.page_file import check_page_file, is_page, write_page
from procedures.insight.report.plots import missing_package
from procedures.process.application import application

_MOST_AXES = 2


@dataclass(frozen=True)
class ReportRow(ShownRow):
    """A page about a table, or about all tables.

    Attributes:
        path: the file that was written; None without ``out``.
        bytes: size of the page.
        health: score of the table's health, or the lowest one of all tables; None if no table has one.
        html: the page; None with ``out``.
        message: what to install for pictures; None if nothing is missing.
    """

    path: str | None
    bytes: int
    health: int | None
    html: str | None
    message: str | None = None


def _validate(arguments: Mapping[str, Any]) -> None:
    columns, out = arguments["columns"], arguments["out"]
    if columns is not None and arguments["table"] is None:
        raise InvalidArgumentError.missing("table", "columns are those of a table")
    if columns is not None and not (0 < len(columns) <= _MOST_AXES and len(set(columns)) == len(columns)):
        raise InvalidArgumentError.of("columns", f"array({', '.join(columns)})", "one or two indexed columns")
    if out is not None:
        # Statements come from users of a server, too.
        check_page_file("out", out, "a file on the driver")


def _page(
    spark: SparkSession, name: str | None, columns: Sequence[str] | None, out: str | None
) -> tuple[str, int | None]:
    """The page, and the score of the table or the lowest one of all tables."""
    app = application()
    if name is None:
        lines = gather_lake(spark, app.automations, app.clock, partial(diagnosis_of, clock=app.clock))
        scores = [line.health for line in lines if line.health is not None]
        return lake_page(lines, app.clock.now(), _pages_beside(out, lines)), min(scores, default=None)
    facts = gather(ManagedTable.find(spark, name), app.clock, None if columns is None else tuple(columns))
    return page(facts), facts.score


def _pages_beside(out: str | None, lines: Sequence[TableLine]) -> dict[str, str]:
    """The addresses of the pages of tables in the folder of a page: ``db.t.html``, by the name of the table."""
    if out is None:
        return {}
    own = Path(out).absolute()
    named = {line.name: f"{line.name.removeprefix(f'{SESSION_CATALOG}.')}.html" for line in lines}
    beside = {file.name for file in own.parent.glob("*.html") if file != own and is_page(file)}
    return {name: quote(file) for name, file in named.items() if file in beside}


def report(
    call: Call,
    table: str | None = None,
    out: str | None = None,
    columns: Annotated[list[str] | tuple[str, ...] | None, Constraint(not_blank="one or two indexed columns")] = None,
) -> ReportRow:
    """Makes a page about a table with its health, index, files and optimizations, or about all tables; reads metadata
    only.

    Args:
        table: Table name, delta.`path` or path; all tables by default.
        out: File on the driver to write, such as report.html; a column of the result by default.
        columns: The one or two indexed columns over which cubes are drawn; the first two.

    Raises:
        UseError: a column is not indexed, or the file cannot be written.
    """
    text, score = _page(call.spark, table, columns, out)
    # The page about all tables has no pictures.
    message = None if table is None else missing_package()
    if out is None:
        return ReportRow(None, len(text.encode()), score, text, message)
    path = Path(out).absolute()
    write_page(path, text)
    return ReportRow(str(path), len(text.encode()), score, None, message)


REPORT = operation(report, validate=_validate)
