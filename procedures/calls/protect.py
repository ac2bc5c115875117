"""``CALL use.protect``: keeps a version of a table readable, whatever purge and vacuum delete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.epoch_millis import moment
from catalog.errors import InvalidArgumentError, VersionError
from catalog.jvm.table_versions import TableVersions
from catalog.state.protection import check_name, protect, unprotect
from catalog.state.reclaimed import check_not_reclaimed
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import FilesTotal
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import ProtectRow, data_frame_of, ddl_of
from procedures.process.application import application

_TASKS_PER_CORE = 4
_NOTE = (
    "use.vacuum and use.purge keep its files. Delta's own VACUUM and log clean-up do not know it: do not run VACUUM, "
    "and set delta.logRetentionDuration, which is 30 days by default, and delta.deletedFileRetentionDuration, beyond "
    "which Delta refuses time travel, to longer than you need the version."
)


def _validate(arguments: Mapping[str, Any]) -> None:
    check_name(arguments["name"])
    if arguments["version"] < 0:
        raise InvalidArgumentError.of("version", arguments["version"], "a whole number of at least 0")


def _own_files(versions: TableVersions, version: int, newest: int, tasks: int) -> FilesTotal:
    """Returns the total of the files that a version needs beyond the newest one.

    Raises:
        VersionError: some of them are missing.
    """
    files = versions.files(version).distinct().join(versions.files(newest).select("path"), "path", "left_anti").cache()
    try:
        row = files.agg(F.count("*"), F.sum("size")).first()
        total = FilesTotal(0, 0) if row is None else FilesTotal(row[0], row[1] or 0)
        missing = total.files - versions.existing(files.select("path"), tasks).count() if total.files else 0
    finally:
        files.unpersist()
    if missing:
        raise VersionError.incomplete(version, missing)
    return total


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    # A damaged log raises the error that all procedures raise.
    table.snapshot()
    versions, version, name = table.handle.versions(call.spark), call["version"], call["name"]
    tasks = _TASKS_PER_CORE * call.spark.sparkContext.defaultParallelism
    oldest, newest = versions.oldest(), versions.newest()
    check_not_reclaimed(table, version)
    if not oldest <= version <= newest:
        raise VersionError.missing(version, oldest, newest)
    _own_files(versions, version, newest, tasks)
    protect(table, name, version, application().clock.now())
    try:
        # A purge that began before the file was written has recorded which versions it ends. One that begins later
        # sees the file. The files are looked at again for other vacuums.
        check_not_reclaimed(table, version, besides=name)
        total = _own_files(versions, version, newest, tasks)
    except BaseException:
        unprotect(table, name)
        raise
    committed = moment(versions.time_of(version)) or datetime.fromtimestamp(0, timezone.utc)
    return data_frame_of(
        call.spark, ProtectRow, [ProtectRow(name, version, committed, total.files, total.bytes, _NOTE)]
    )


PROTECT = Procedure(
    "protect",
    "Keeps a version of a table readable: use.purge and use.vacuum keep its files until use.unprotect.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter("version", "BIGINT", "The version."),
        Parameter(
            "name",
            "STRING",
            "Name of the protection: letters, digits, '.', '_' and '-', used once per table.",
        ),
    ),
    ddl_of(ProtectRow),
    _run,
    _validate,
)
