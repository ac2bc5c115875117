"""``CALL use.compact``: rewrites files without their deleted rows, or with only the latest row of each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.columns.key_columns import names_text
from catalog.errors import InvalidArgumentError
from catalog.settings.strategy_options import DEFAULT_BYTES_PER_ITER, MIN_DELETED_RATIO
from procedures.calls.optimize import SHORT, run_optimize
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import OptimizeRow, ddl_of
from procedures.loop.optimize_parameters import SHOW_DETAILS
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.rewrite.outdated_rows import ALL_TIES
from procedures.selection.delete_compaction import MIN_DELETED_ROWS
from procedures.selection.delete_compaction import NAME as DELETE_COMPACTION
from procedures.selection.latest_row_compaction import NAME as LATEST_ROW_COMPACTION
from procedures.selection.latest_row_compaction import TIES

_OPTIONS = ("min_deleted_ratio", "min_deleted_rows")
_KEY_OPTIONS = ("primary_key", "order_by", "ties")
# What is accepted as a primary key.
_KEY = "at least one column, each once"


def _settings(arguments: Mapping[str, Any]) -> OptimizeSettings:
    """The settings of the run that the arguments ask for."""
    others = {name: value for name, value in arguments.items() if name not in (*_OPTIONS, *_KEY_OPTIONS)}
    options = {name: str(arguments[name]) for name in _OPTIONS if arguments[name] is not None}
    strategy = DELETE_COMPACTION
    if arguments["primary_key"] is not None:
        key = {**{name: arguments[name] for name in _KEY_OPTIONS}, "primary_key": names_text(arguments["primary_key"])}
        options |= key
        strategy = f"{LATEST_ROW_COMPACTION},{DELETE_COMPACTION}"
    unused = {"revision_id": None, "files": None, "revision_rewrite": False}
    return OptimizeSettings.of({**unused, **others, "strategy": strategy, "options": options})


def _validate(arguments: Mapping[str, Any]) -> None:
    # As the caller has written them: settings take options as text.
    for setting in (MIN_DELETED_RATIO, MIN_DELETED_ROWS, TIES):
        setting.check_value(arguments[setting.name])
    key, order = arguments["primary_key"], arguments["order_by"]
    if key is not None and not 0 < len(set(key)) == len(key):
        raise InvalidArgumentError.of("primary_key", f"array({', '.join(key)})", _KEY)
    if key is not None and order is None:
        raise InvalidArgumentError.missing(
            "order_by", "primary_key needs the column whose greatest value is the latest"
        )
    if key is None and order is not None:
        raise InvalidArgumentError.missing("primary_key", "order_by needs the columns that name a row")
    if key is None and arguments["ties"] != ALL_TIES:
        raise InvalidArgumentError.missing("primary_key", "ties needs the columns that name a row")
    _settings(arguments)


def _run(call: Call) -> DataFrame:
    return run_optimize(call, _settings(call.arguments))


COMPACT = Procedure(
    "compact",
    "Rewrites files many of whose rows are deleted, without these rows; with primary_key, only the latest row of each "
    "key stays. Tables need no index for it.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter(
            "min_deleted_ratio",
            "DOUBLE",
            "Rewrites a file if deletion vectors hide more than this share of its rows.",
            MIN_DELETED_RATIO.value({}),
        ),
        Parameter("min_deleted_rows", "BIGINT", "Also rewrites a file if so many of its rows are hidden.", None),
        Parameter(
            "primary_key",
            "ARRAY<STRING>",
            "Columns that together name a row. Of the rows of one key only the latest stays; the others are removed.",
            None,
            not_blank=_KEY,
        ),
        Parameter(
            "order_by",
            "STRING",
            "With primary_key: the column whose greatest value is the latest.",
            None,
            not_blank="the name of one column",
        ),
        Parameter(
            "ties",
            "STRING",
            "With primary_key: whether all rows with the greatest value of a key stay, or any one of them.",
            ALL_TIES,
        ),
        Parameter("where", "STRING", "Rewrites only files that may contain rows that match this predicate.", None),
        Parameter(
            "bytes_per_iter",
            "BIGINT",
            f"Bytes of files rewritten in a commit; {DEFAULT_BYTES_PER_ITER} by default.",
            None,
        ),
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
        SHOW_DETAILS,
    ),
    ddl_of(OptimizeRow),
    _run,
    _validate,
    SHORT,
)
