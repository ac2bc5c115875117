"""``CALL use.optimize``: its parameters and result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Procedure
from procedures.declare.result_rows import OptimizeRow, data_frame_of, ddl_of
from procedures.declare.runs import Run
from procedures.loop.optimize_parameters import OPTIMIZE_PARAMETERS
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.table_optimizer import optimize
from procedures.process.application import application

SHORT = ("strategy", "reason", "state", "input_files", "output_files", "rows", "version", "message")
"""The result columns with ``details => false``."""


def _validate(arguments: Mapping[str, Any]) -> None:
    OptimizeSettings.of(arguments)


def _run(call: Call) -> DataFrame:
    return run_optimize(call, OptimizeSettings.of(call.arguments))


def run_optimize(call: Call, settings: OptimizeSettings) -> DataFrame:
    """Optimizes the table of a call, and returns the rows of the report.

    Args:
        call: of ``use.optimize``, or of a procedure that runs one strategy of it.
        settings: what to do.
    """
    table = ManagedTable.find(call.spark, call["table"])
    rows = optimize(table, settings, Run.of(table, call.trigger, settings.parameters, application().clock))
    return data_frame_of(call.spark, OptimizeRow, rows)


OPTIMIZE = Procedure(
    "optimize",
    "Indexes unindexed files and merges fragmented cubes of a table, group by group, each in one commit.",
    OPTIMIZE_PARAMETERS,
    ddl_of(OptimizeRow),
    _run,
    _validate,
    SHORT,
)
