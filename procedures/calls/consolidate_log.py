"""``CALL use.consolidate_log``: makes the logs of tables quick to load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.jvm.metastore import tables_of_schema
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import ConsolidateLogRow, data_frame_of, ddl_of
from procedures.lifecycle.log.consolidation import LogRequest, consolidate_log, consolidate_logs
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
    if arguments["parallelism"] < 1:
        raise InvalidArgumentError.of("parallelism", arguments["parallelism"], "a whole number of at least 1")
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


def _tables(call: Call) -> list[ManagedTable]:
    """Returns the tables; each must exist before the first one is changed."""
    if call[SCHEMA] is None:
        names = call[TABLES] or [call[TABLE]]
        found = {table.location: table for table in (ManagedTable.find(call.spark, name) for name in names)}
        return list(found.values())
    return [ManagedTable.find(call.spark, known.full_name) for known in tables_of_schema(call.spark, call[SCHEMA])]


def _run(call: Call) -> DataFrame:
    limits = {
        name: None if call[name] is None else instant(call.spark, name, call[name])
        for name in (TIMESTAMP_START, TIMESTAMP_END)
    }
    start, end = limits[TIMESTAMP_START], limits[TIMESTAMP_END]
    if start is not None and end is not None and start.millis > end.millis:
        raise InvalidArgumentError.of(TIMESTAMP_START, start.text, f"a time before {TIMESTAMP_END}, {end.text}")
    request = LogRequest(_modes(call["modes"]), start, end, call["dry_run"], call.trigger)
    tables = _tables(call)
    if call[TABLE] is not None:
        rows = consolidate_log(tables[0], request)
    else:
        rows = consolidate_logs(call.spark, tables, request, call["parallelism"])
    return data_frame_of(call.spark, ConsolidateLogRow, rows)


CONSOLIDATE_LOG = Procedure(
    "consolidate_log",
    "Makes the logs of tables quick to load: checkpoints, statistics and tags of files, old revisions, events.",
    (
        Parameter(TABLE, "STRING", "Table name, delta.`path` or path.", None),
        Parameter(TABLES, "ARRAY<STRING>", "Several tables, in place of one.", None),
        Parameter(
            SCHEMA,
            "STRING",
            "All Delta tables of this schema, in place of one table.",
            None,
            not_blank="the name of a schema",
        ),
        Parameter(
            "modes",
            "ARRAY<STRING>",
            f"Any of {', '.join(mode.name for mode in MODES)}; {' and '.join(DEFAULT_MODES)} by default.",
            None,
        ),
        Parameter(
            TIMESTAMP_START,
            "STRING",
            "Considers files and events of this time or later; for file_metadata, events.",
            None,
        ),
        Parameter(
            TIMESTAMP_END,
            "STRING",
            "Considers files and events of this time or earlier, and writes a checkpoint of the version at this time.",
            None,
        ),
        Parameter("parallelism", "INT", "How many tables at a time.", _TABLES_AT_ONCE),
        Parameter("dry_run", "BOOLEAN", "Shows what would be done, and changes nothing.", False),
    ),
    ddl_of(ConsolidateLogRow),
    _run,
    _validate,
)
