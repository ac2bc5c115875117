"""``CALL use.compact``: rewrites files without their deleted rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from procedures.declaration import Call, Parameter, Procedure
from procedures.optimize import run_optimize
from procedures.optimizer.optimize_settings import OptimizeSettings
from procedures.result_rows import OptimizeRow, ddl_of
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
    return run_optimize(call, _settings(call.arguments))


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
