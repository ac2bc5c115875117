"""The operations that the shim requests of Python: one dataclass for the arguments of each operation.

``Operation.java`` declares the same names and keys on the side of the shim; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sql_ext.bridge_arguments import (
    Arguments,
    Boolean,
    Fraction,
    Integer,
    JavaObject,
    JsonMap,
    JsonMetadata,
    JsonSchema,
    JsonTexts,
    Map,
    Names,
    Text,
)


@dataclass(frozen=True)
class CallProcedure(Arguments):
    """Run a procedure.

    Attributes:
        name: of the procedure.
        arguments: its arguments by name.
    """

    operation: ClassVar[str] = "call"
    name: Text
    arguments: Map


@dataclass(frozen=True)
class UnknownProcedure(Arguments):
    """Explain that a procedure does not exist.

    Attributes:
        name: as the statement has it.
    """

    operation: ClassVar[str] = "unknown_procedure"
    name: Text


@dataclass(frozen=True)
class VirtualTableRows(Arguments):
    """Compute the rows of ``<table>.<kind>``.

    Attributes:
        table: name of the table.
        kind: name of the virtual table.
    """

    operation: ClassVar[str] = "virtual_table"
    table: Text
    kind: Text


@dataclass(frozen=True)
class SystemTableRows(Arguments):
    """Compute the rows of ``use_catalog.system_lake_tables.<kind>``.

    Attributes:
        kind: name of the system table.
        columns: the columns that the query needs.
    """

    operation: ClassVar[str] = "system_table"
    kind: Text
    columns: Names


@dataclass(frozen=True)
class CheckTable(Arguments):
    """Refuse a table that cannot be read, or a path that is not the root of a table.

    Attributes:
        table: name of the table.
    """

    operation: ClassVar[str] = "check_table"
    table: Text


@dataclass(frozen=True)
class CheckVirtualTable(Arguments):
    """Refuse a virtual table that does not exist, or one of something that is no Delta table.

    Attributes:
        table: name of the table.
        name: name after it.
    """

    operation: ClassVar[str] = "check_virtual_table"
    table: Text
    name: Text


@dataclass(frozen=True)
class CheckVersion(Arguments):
    """Refuse time travel to a version that was reclaimed.

    Attributes:
        table: name of the table.
        version: the version; -1 for a time before the log begins.
    """

    operation: ClassVar[str] = "check_version"
    table: Text
    version: Integer


@dataclass(frozen=True)
class PlanSample(Arguments):
    """Turn the fractions of a sample into weights.

    Attributes:
        configuration: properties of the sampled table, as JSON.
        lower: fraction at which the sample starts.
        upper: fraction at which it ends.
        settings: of the session, as far as they are set.
    """

    operation: ClassVar[str] = "plan_sample"
    configuration: Text
    lower: Fraction
    upper: Fraction
    settings: JsonMap


@dataclass(frozen=True)
class PlanRead(Arguments):
    """Turn the filters of a query into boxes of coordinates and weights.

    Attributes:
        configuration: properties of the table, as JSON.
        conditions: the filters, as a JSON tree.
        settings: of the session, as far as they are set.
    """

    operation: ClassVar[str] = "plan_read"
    configuration: Text
    conditions: Text
    settings: JsonMap


@dataclass(frozen=True)
class KeyLimitsOf(Arguments):
    """Return the limits of what keys of joins and of MERGE may cost in the session.

    Attributes:
        settings: of the session, as far as they are set.
    """

    operation: ClassVar[str] = "key_limits"
    settings: JsonMap


@dataclass(frozen=True)
class PlanKeyJob(Arguments):
    """Decide whether a job collects the keys of the other side of a join.

    Attributes:
        scan_bytes: bytes that the scan would read of its columns.
        side_bytes: bytes that the job would read.
        one_key_share: share of the bytes of the scan that a single key leaves.
        settings: of the session, as far as they are set.
    """

    operation: ClassVar[str] = "plan_key_job"
    scan_bytes: Integer
    side_bytes: Integer
    one_key_share: Fraction
    settings: JsonMap


@dataclass(frozen=True)
class CheckSetting(Arguments):
    """Refuse a value of a Spark conf of ours.

    Attributes:
        name: of the conf.
        value: as written.
    """

    operation: ClassVar[str] = "check_setting"
    name: Text
    value: Text


@dataclass(frozen=True)
class CheckMetadata(Arguments):
    """Check what a statement changes of a table's properties and columns.

    Attributes:
        before: the table as it is.
        after: the table as the statement would leave it.
        inherited: properties of its database and of the session.
    """

    operation: ClassVar[str] = "check_metadata"
    before: JsonMetadata
    after: JsonMetadata
    inherited: JsonMap


@dataclass(frozen=True)
class CheckDatabase(Arguments):
    """Check the properties of USE that a statement sets on a database.

    Attributes:
        properties: what the statement sets.
    """

    operation: ClassVar[str] = "check_database"
    properties: JsonMap


@dataclass(frozen=True)
class CheckOtherFormat(Arguments):
    """Refuse properties of USE on a table that is not a Delta table.

    Attributes:
        table: name of the table.
        provider: its format.
        properties: what the statement sets.
    """

    operation: ClassVar[str] = "check_other_format"
    table: Text
    provider: Text
    properties: JsonMap


@dataclass(frozen=True)
class CheckOptions(Arguments):
    """Check the options of a write.

    Attributes:
        options: options of ours.
        others: names of the other options.
        of_delta: names of the options that Delta knows.
    """

    operation: ClassVar[str] = "check_options"
    options: JsonMap
    others: JsonTexts
    of_delta: JsonTexts


@dataclass(frozen=True)
class IndexSettings(Arguments):
    """Turn the options of a write into table properties.

    Attributes:
        options: options of ours.
        configuration: table properties.
        schema: the table's schema with the write's columns.
        partition_columns: logical names.
        replaces: whether the write replaces all rows.
        writes: whether rows are written; False when a table is only created.
    """

    operation: ClassVar[str] = "index_settings"
    options: JsonMap
    configuration: JsonMap
    schema: JsonSchema
    partition_columns: JsonTexts
    replaces: Boolean
    writes: Boolean


@dataclass(frozen=True)
class WriteFiles(Arguments):
    """Write the rows of an indexed write.

    Attributes:
        write: the shim's ``IndexedRows``.
    """

    operation: ClassVar[str] = "write_files"
    write: JavaObject


@dataclass(frozen=True)
class WriteKeptRows(Arguments):
    """Write the rows that a statement changes or keeps.

    Attributes:
        write: the shim's ``KeptRows``.
    """

    operation: ClassVar[str] = "write_kept_rows"
    write: JavaObject


@dataclass(frozen=True)
class WriteCommitted(Arguments):
    """Take notice that an indexed write was committed.

    Attributes:
        write: id of the write.
        version: version of the commit.
    """

    operation: ClassVar[str] = "write_committed"
    write: Text
    version: Integer


@dataclass(frozen=True)
class CatalogChanged(Arguments):
    """Take notice of a change of the catalog.

    Attributes:
        kind: ``changed``, ``renamed`` or ``dropped``.
        name: name of the table.
        before: its name before a renaming; '' otherwise.
        location: root of the table; '' when it was dropped.
    """

    operation: ClassVar[str] = "catalog_changed"
    kind: Text
    name: Text
    before: Text
    location: Text


@dataclass(frozen=True)
class ManualTrigger(Arguments):
    """Start an optimization for ``ALTER TABLE use_catalog.…``.

    Attributes:
        table: name of the table.
        properties: what the statement sets.
    """

    operation: ClassVar[str] = "manual_trigger"
    table: Text
    properties: JsonMap


@dataclass(frozen=True)
class ScansRecorded(Arguments):
    """Store the records of scans by finished queries.

    Attributes:
        location: root of the table that they read.
        lines: a JSON object per line.
    """

    operation: ClassVar[str] = "scans_recorded"
    location: Text
    lines: Text


OPERATIONS: Mapping[str, type[Arguments]] = {
    kind.operation: kind
    for kind in (
        CallProcedure,
        UnknownProcedure,
        VirtualTableRows,
        SystemTableRows,
        CheckTable,
        CheckVirtualTable,
        CheckVersion,
        PlanSample,
        PlanRead,
        KeyLimitsOf,
        CheckSetting,
        PlanKeyJob,
        CheckMetadata,
        CheckDatabase,
        CheckOtherFormat,
        CheckOptions,
        IndexSettings,
        WriteFiles,
        WriteKeptRows,
        WriteCommitted,
        CatalogChanged,
        ManualTrigger,
        ScansRecorded,
    )
}
