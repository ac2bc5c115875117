"""``CALL use.index``: sets the index properties of a table; data files do not change until ``use.optimize``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.counted_nouns import agreeing, counted
from catalog.errors import ConcurrentChangeError, IndexConfigurationError, InvalidArgumentError, TableError
from catalog.jvm.java_errors import is_conflict, text_of
from catalog.jvm.session import described_jobs
from catalog.jvm.table_transaction import TableTransaction
from catalog.properties.declared_stats import COLUMN_STATS_KEY, check_text
from catalog.properties.index_properties import COLUMNS_KEY, CUBE_SIZE_KEY, IndexConfiguration, column_entries
from catalog.properties.target_file_size import TARGET_FILE_BYTES_KEY
from catalog.table.managed_table import ManagedTable, check_rights_of
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call
from procedures.declare.operation import AT_LEAST_ONE, Constraint, operation
from procedures.declare.result_rows import ShownRow
from procedures.insight.health.remedy import sql_text
from procedures.rewrite.parquet_source import ParquetSource

OPERATION = "USE INDEX"


@dataclass(frozen=True)
class IndexRow(ShownRow):
    """A table whose index properties were set.

    Attributes:
        table: full name.
        properties: properties that were requested.
        version: version committed; None if the properties were already set.
        converted: whether the table was converted from Parquet.
        unindexed_files: files that are not indexed now.
        unindexed_bytes: their bytes.
        advice: ``OPTIMIZE``, ``NEW_REVISION`` or ``NOTHING_TO_DO``.
        message: one-sentence summary.
    """

    table: str
    properties: dict[str, str]
    version: int | None
    converted: bool
    unindexed_files: int
    unindexed_bytes: int
    advice: str
    message: str


def _validate(arguments: Mapping[str, Any]) -> None:
    if not arguments["columns"].strip():
        raise InvalidArgumentError.of(
            "columns", arguments["columns"], "column names separated by commas, as 'a,b:hashing'"
        )
    column_entries("columns", arguments["columns"])
    check_text(arguments["column_stats"])


def _checked(configuration: dict[str, str], snapshot: TableSnapshot) -> None:
    IndexConfiguration.of(configuration, snapshot.schema, snapshot.latest_revision, snapshot.partition_columns)


def _find(spark: SparkSession, table: str, requested: dict[str, str], *, convert: bool) -> tuple[ManagedTable, bool]:
    """Returns the table and whether it was converted; validates all arguments before a conversion."""
    source = ParquetSource.find(spark, table) if convert else None
    if source is None:
        try:
            return ManagedTable.find(spark, table), False
        except TableError as error:
            if error.code == "USE_NOT_A_DELTA_TABLE" and not convert:
                error.message += " To convert a Parquet table in place, add convert => true."
            raise
    IndexConfiguration.of(requested, source.schema, None, source.partition_columns)
    if not source.is_path:
        check_rights_of(spark, source.name)
    with described_jobs(spark, f"USE index: converting {table}"):
        source.convert()
    return ManagedTable.find(spark, source.delta_name), True


def index(
    call: Call,
    table: Annotated[str, Constraint(doc="Table name, delta.`path` or path; parquet.`path` with convert.")],
    columns: str,
    *,
    cube_size: Annotated[int | None, AT_LEAST_ONE] = None,
    target_file_bytes: Annotated[int | None, AT_LEAST_ONE] = None,
    column_stats: str | None = None,
    convert: bool = False,
) -> IndexRow:
    """Sets the index properties of a Delta table. No data file changes; use.optimize indexes the existing files.

    Args:
        columns: Columns to index, separated by commas, such as 'a,b:hashing'.
        cube_size: Rows per inner cube. By default, the property does not change.
        target_file_bytes: Target size of data files, in bytes. By default, the property does not change.
        column_stats: Known ranges as JSON, such as {"a_min": 0, "a_max": 100}.
        convert: First converts a Parquet table to Delta in place.

    Raises:
        UseError: a column does not exist or cannot be indexed, or a concurrent commit conflicts; no property was set.
    """
    values = {
        COLUMNS_KEY: columns,
        CUBE_SIZE_KEY: cube_size,
        TARGET_FILE_BYTES_KEY: target_file_bytes,
        COLUMN_STATS_KEY: column_stats,
    }
    requested = {key: str(value) for key, value in values.items() if value is not None}
    found, converted = _find(call.spark, table, requested, convert=convert)
    found.check_rights()
    transaction = found.transaction(call.spark)
    snapshot = TableSnapshot.of(transaction.state(), found.location)
    _checked(snapshot.settings | requested, snapshot)
    changed = {key: value for key, value in requested.items() if snapshot.configuration.get(key) != value}
    version = _set(transaction, changed) if changed else None
    with described_jobs(call.spark, f"USE index: {found.name}"):
        unindexed = snapshot.unindexed_total
    advice, message = _advice(found.name, snapshot, requested, changed, unindexed.files)
    return IndexRow(found.name, requested, version, converted, unindexed.files, unindexed.bytes, advice, message)


def _set(transaction: TableTransaction, changed: dict[str, str]) -> int:
    transaction.configure(changed)
    try:
        return transaction.commit(OPERATION, changed, {})
    except (Py4JJavaError, PySparkException) as error:
        if not is_conflict(error):
            raise
        raise ConcurrentChangeError(
            f"A concurrent commit changed the table; no property was set: {text_of(error)}"
        ) from error


def _advice(
    name: str, snapshot: TableSnapshot, requested: dict[str, str], changed: dict[str, str], unindexed: int
) -> tuple[str, str]:
    """Returns a code, and a sentence that says what to do next."""
    call = f"CALL use.optimize(table => {sql_text(name)}"
    latest = snapshot.latest_revision
    if latest is not None and COLUMNS_KEY in changed:
        configuration = IndexConfiguration.of(
            snapshot.settings | requested, snapshot.schema, latest, snapshot.partition_columns
        )
        if configuration is None:
            raise IndexConfigurationError.no_columns(name, OPERATION)
        if configuration.transformers != latest.transformers:
            return "NEW_REVISION", (
                f"The next data that is indexed starts revision {latest.revision_id + 1}; older files stay "
                f"in their revisions until {call}, revision_rewrite => true)."
            )
    if unindexed:
        return "OPTIMIZE", f"{counted(unindexed, 'file')} {agreeing(unindexed, 'is', 'are')} not indexed yet: {call})."
    return (
        "NOTHING_TO_DO",
        "Every file is indexed." if latest else "The table is empty; rows are indexed after they are written.",
    )


INDEX = operation(index, validate=_validate)
