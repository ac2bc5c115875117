"""``CALL use.protect``: keeps a version of a table readable, whatever purge and vacuum delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any

from pyspark.sql import functions as F

from catalog.epoch_millis import moment
from catalog.errors import VersionError
from catalog.jvm.table_versions import TableVersions
from catalog.state import protection
from catalog.state.reclaimed import check_not_reclaimed
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import FilesTotal
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, TableName, operation
from procedures.declare.result_rows import ShownRow
from procedures.process.application import application

_TASKS_PER_CORE = 4
_NOTE = (
    "use.vacuum and use.purge keep its files. Delta's own VACUUM and log clean-up do not know it: do not run VACUUM, "
    "and set delta.logRetentionDuration, which is 30 days by default, and delta.deletedFileRetentionDuration, beyond "
    "which Delta refuses time travel, to longer than you need the version."
)


@dataclass(frozen=True)
class ProtectRow(ShownRow):
    """A protected version.

    Attributes:
        name: of the protection.
        version: the version.
        committed_at: time of its commit.
        files: files that it needs and the newest version does not.
        bytes: their size.
        message: what the protection does not cover.
    """

    name: str
    version: int
    committed_at: datetime
    files: int
    bytes: int
    message: str


def _validate(arguments: Mapping[str, Any]) -> None:
    protection.check_name(arguments["name"])


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


def protect(call: Call, table: TableName, version: Annotated[int, Constraint(least=0)], name: str) -> ProtectRow:
    """Keeps a version of a table readable: use.purge and use.vacuum keep its files until use.unprotect.

    Args:
        version: The version.
        name: Name of the protection: letters, digits, '.', '_' and '-', used once per table.

    Raises:
        UseError: the version does not exist or was reclaimed, or the name is invalid or used already.
    """
    found = ManagedTable.find(call.spark, table)
    found.check_rights()
    # A damaged log raises the error that all procedures raise.
    found.snapshot()
    versions = found.handle.versions(call.spark)
    tasks = _TASKS_PER_CORE * call.spark.sparkContext.defaultParallelism
    oldest, newest = versions.oldest(), versions.newest()
    check_not_reclaimed(found, version)
    if not oldest <= version <= newest:
        raise VersionError.missing(version, oldest, newest)
    _own_files(versions, version, newest, tasks)
    made = protection.protect(found, name, version, application().clock.now())
    try:
        # A purge that began before the file was written has recorded which versions it ends. One that begins later
        # sees the file. The files are looked at again for other vacuums.
        check_not_reclaimed(found, version, is_certain=True, committed=versions.time_of(version))
        total = _own_files(versions, version, newest, tasks)
        protection.confirm(found, made)
    except BaseException:
        protection.unprotect(found, name)
        raise
    committed = moment(versions.time_of(version)) or datetime.fromtimestamp(0, timezone.utc)
    return ProtectRow(name, version, committed, total.files, total.bytes, _NOTE)


PROTECT = operation(protect, validate=_validate)
