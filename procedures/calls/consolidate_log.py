"""``CALL use.consolidate_log``: makes the logs of tables quick to load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.jvm.metastore import tables_of_schema
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import AT_LEAST_ONE, Constraint, Int, operation
from procedures.lifecycle.log import consolidation
from procedures.lifecycle.log.consolidation import ConsolidateLogRow, LogRequest
from procedures.lifecycle.log.log_mode import TIMESTAMP_END, TIMESTAMP_START, LogMode
from procedures.lifecycle.log.modes import DEFAULT_MODES, MODES
from procedures.selection.timestamps import WrittenTime, instant

TABLE, TABLES, SCHEMA = "table", "tables", "schema"
_TABLES_AT_ONCE = 4


def _modes(names: Iterable[str] | None) -> tuple[LogMode, ...]:
    """Returns the modes of these names in the order in which they run.

    Raises:
        InvalidArgumentError: there is none, or one twice.
        UnknownNameError: a mode that does not exist.
    """
    given = [name.lower() for name in (DEFAULT_MODES if names is None else names)]
    known = {name: mode for mode in MODES for name in (mode.name, *mode.aliases)}
    for name in given:
        if name not in known:
            raise UnknownNameError.of("mode", name, known)
    asked = [known[name].name for name in given]
    if not asked or len(set(asked)) < len(asked):
        accepted = f"each mode at most once, of {', '.join(mode.name for mode in MODES)}"
        raise InvalidArgumentError.of("modes", ", ".join(given), accepted)
    return tuple(mode for mode in MODES if mode.name in asked)


def _validate(arguments: Mapping[str, Any]) -> None:
    named = [name for name in (TABLE, TABLES, SCHEMA) if arguments[name] is not None]
    if len(named) != 1:
        raise InvalidArgumentError.of(
            " and ".join(named) or TABLE,
            ", ".join(str(arguments[name]) for name in named) or None,
            f"exactly one of {TABLE}, {TABLES} and {SCHEMA} is required",
        )
    if arguments[TABLES] is not None and not arguments[TABLES]:
        raise InvalidArgumentError.of(TABLES, "array()", "at least one table is required")
    modes = _modes(arguments["modes"])
    for name in (TIMESTAMP_START, TIMESTAMP_END):
        text = arguments[name]
        if text is None:
            continue
        WrittenTime.of(name, text)
        for mode in modes:
            if name not in mode.times:
                accepting = " and ".join(m.name for m in MODES if name in m.times)
                raise InvalidArgumentError.of(name, text, f"the mode {mode.name} does not accept it; {accepting} do")


def _tables(spark: SparkSession, names: Sequence[str], schema: str | None) -> list[ManagedTable]:
    """Returns the tables; each must exist before the first one is changed."""
    if schema is None:
        found = {table.location: table for table in (ManagedTable.find(spark, name) for name in names)}
        return list(found.values())
    return [ManagedTable.find(spark, known.full_name) for known in tables_of_schema(spark, schema)]


def consolidate_log(
    call: Call,
    table: str | None = None,
    tables: list[str] | tuple[str, ...] | None = None,
    schema: Annotated[str | None, Constraint(not_blank="the name of a schema")] = None,
    *,
    modes: list[str] | tuple[str, ...] | None = None,
    timestamp_start: str | None = None,
    timestamp_end: str | None = None,
    parallelism: Annotated[Int, AT_LEAST_ONE] = _TABLES_AT_ONCE,
    dry_run: bool = False,
) -> list[ConsolidateLogRow]:
    """Makes the logs of tables quick to load: checkpoints, statistics and tags of files, old revisions, events.

    Args:
        table: Table name, delta.`path` or path.
        tables: Several tables, in place of one.
        schema: All Delta tables of this schema, in place of one table.
        modes: Any of table_metadata, file_metadata, events, commits; events and commits by default.
        timestamp_start: Considers files and events of this time or later; for file_metadata, events.
        timestamp_end: Considers files and events of this time or earlier, and writes a checkpoint of the version at
            this time.
        parallelism: How many tables at a time.
        dry_run: Shows what would be done, and changes nothing.

    Returns:
        A row per table and mode, with what a new session reads to load the table before and after.

    Raises:
        UseError: an argument is invalid, or another run optimizes the table; modes before are done.
    """
    times = {TIMESTAMP_START: timestamp_start, TIMESTAMP_END: timestamp_end}
    start, end = (None if text is None else instant(call.spark, name, text) for name, text in times.items())
    if start is not None and end is not None and start.millis > end.millis:
        raise InvalidArgumentError.of(TIMESTAMP_START, start.text, f"a time before {TIMESTAMP_END}, {end.text}")
    request = LogRequest(_modes(modes), start, end, dry_run, call.trigger)
    if table is not None:
        return consolidation.consolidate_log(ManagedTable.find(call.spark, table), request)
    found = _tables(call.spark, tables or (), schema)
    return consolidation.consolidate_logs(call.spark, found, request, parallelism)


CONSOLIDATE_LOG = operation(consolidate_log, validate=_validate)
