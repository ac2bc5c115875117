"""``CALL use.compact``: rewrites files without their deleted rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure
from procedures.optimizer.engine import optimize
from procedures.optimizer.optimize_settings import OptimizeSettings
from procedures.optimizer.runs import CALL, Run
from procedures.result_rows import OptimizeRow, data_frame_of, ddl_of
from procedures.selection.delete_compaction import MIN_DELETED_RATIO, DeleteCompaction
from procedures.selection.delete_compaction import NAME as DELETE_COMPACTION

_OPTIONS = ("min_deleted_ratio", "min_deleted_rows")


def _settings(arguments: Mapping[str, Any]) -> OptimizeSettings:
    """The settings of the run that the arguments ask for."""
    given = {name: value for name, value in arguments.items() if name not in _OPTIONS}
    options = {name: str(arguments[name]) for name in _OPTIONS if arguments[name] is not None}
    unused = {"revision_id": None, "files": None, "revision_rewrite": False}
    return OptimizeSettings.of({**unused, **given, "strategy": DELETE_COMPACTION, "options": options})


def _validate(arguments: Mapping[str, Any]) -> None:
    # As the caller has written them: settings take options as text.
    DeleteCompaction().check_options(arguments)
    _settings(arguments)


def _run(call: Call) -> DataFrame:
    settings = _settings(call.arguments)
    table = ManagedTable.find(call.spark, call["table"])
    rows = optimize(table, settings, Run.of(table, CALL, settings.parameters, application().clock))
    return data_frame_of(call.spark, OptimizeRow, rows)


COMPACT = Procedure(
    "compact",
    "Rewrites files many of whose rows are deleted, without these rows; tables need no index for it.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter(
            "min_deleted_ratio",
            "DOUBLE",
            "Rewrites a file if deletion vectors hide more than this share of its rows.",
            MIN_DELETED_RATIO,
        ),
        Parameter("min_deleted_rows", "BIGINT", "Also rewrites a file if so many of its rows are hidden.", None),
        Parameter("where", "STRING", "Rewrites only files that may contain rows that match this predicate.", None),
        Parameter("bytes_per_iter", "BIGINT", "Bytes of files rewritten in a commit; 1000000000 by default.", None),
        Parameter("max_iterations", "INT", "Maximum number of commits.", None),
        Parameter("max_bytes", "BIGINT", "Starts no further group after this many bytes were rewritten.", None),
        Parameter("max_duration", "STRING", "Starts no further group after this time, for example '10 minutes'.", None),
        Parameter("parallelism", "INT", "Groups rewritten at the same time.", 1),
        Parameter(
            "dry_run",
            "BOOLEAN",
            "Shows what would be read, written and freed, and changes nothing.",
            False,
        ),
    ),
    ddl_of(OptimizeRow),
    _run,
    _validate,
)
