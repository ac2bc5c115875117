"""``CALL use.compact``: rewrites files without their deleted rows, or with only the latest row of each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from catalog.columns.key_columns import names_text
from catalog.errors import InvalidArgumentError
from catalog.settings.strategy_options import MIN_DELETED_RATIO
from procedures.calls.optimize import SHORT, run_optimize
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, Int, TableName, operation
from procedures.loop.optimize_parameters import MaxBytes, MaxDuration, Parallelism, RowsWhere
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.report import OptimizeRow
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


def compact(
    call: Call,
    table: TableName,
    *,
    min_deleted_ratio: float = MIN_DELETED_RATIO.value({}),
    min_deleted_rows: int | None = None,
    primary_key: Annotated[list[str] | tuple[str, ...] | None, Constraint(not_blank=_KEY)] = None,
    order_by: Annotated[str | None, Constraint(not_blank="the name of one column")] = None,
    ties: str = ALL_TIES,
    where: RowsWhere = None,
    bytes_per_iter: int | None = None,
    max_iterations: Int | None = None,
    max_bytes: MaxBytes = None,
    max_duration: MaxDuration = None,
    parallelism: Parallelism = 1,
    dry_run: bool = False,
) -> list[OptimizeRow]:
    """Rewrites files many of whose rows are deleted, without these rows; with primary_key, only the latest row of each
    key stays. Tables need no index for it.

    Args:
        min_deleted_ratio: Rewrites a file if deletion vectors hide more than this share of its rows.
        min_deleted_rows: Also rewrites a file if so many of its rows are hidden.
        primary_key: Columns that together name a row. Of the rows of one key only the latest stays; the others are
            removed.
        order_by: With primary_key: the column whose greatest value is the latest.
        ties: With primary_key: whether all rows with the greatest value of a key stay, or any one of them.
        bytes_per_iter: Bytes of files rewritten in a commit; 1000000000 by default.
        max_iterations: Maximum number of commits.
        dry_run: Shows what would be read, written and freed, and changes nothing.

    Returns:
        A row per group and outcome; in a dry run, a row per group.

    Raises:
        UseError: an argument is invalid, before any data is read; or a group failed for a reason other than a conflict.
            Earlier commits stay.
    """
    arguments = {
        "min_deleted_ratio": min_deleted_ratio,
        "min_deleted_rows": min_deleted_rows,
        "primary_key": primary_key,
        "order_by": order_by,
        "ties": ties,
        "where": where,
        "bytes_per_iter": bytes_per_iter,
        "max_iterations": max_iterations,
        "max_bytes": max_bytes,
        "max_duration": max_duration,
        "parallelism": parallelism,
        "dry_run": dry_run,
    }
    return run_optimize(call, table, _settings(arguments))


COMPACT = operation(compact, validate=_validate, short=SHORT)
