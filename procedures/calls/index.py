"""``CALL use.index``: sets the index properties of a table; data files do not change until ``use.optimize``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from catalog.counted_nouns import agreeing, counted
from catalog.errors import ConcurrentChangeError, IndexConfigurationError, InvalidArgumentError, TableError
from catalog.jvm.java_errors import is_conflict, text_of
from catalog.jvm.session import described_jobs
from catalog.jvm.table_transaction import TableTransaction
from catalog.properties.declared_stats import COLUMN_STATS_KEY, check_text
from catalog.properties.index_properties import (
    COLUMNS_KEY,
    CUBE_SIZE_KEY,
    TARGET_FILE_BYTES_KEY,
    IndexConfiguration,
    column_entries,
)
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import IndexRow, data_frame_of, ddl_of
from procedures.rewrite.parquet_source import ParquetSource

OPERATION = "USE INDEX"


def _validate(arguments: Mapping[str, Any]) -> None:
    for name in ("cube_size", "target_file_bytes"):
        value = arguments[name]
        if value is not None and value < 1:
            raise InvalidArgumentError.of(name, value, "a whole number of at least 1")
    if not arguments["columns"].strip():
        raise InvalidArgumentError.of(
            "columns", arguments["columns"], "column names separated by commas, as 'a,b:hashing'"
        )
    column_entries("columns", arguments["columns"])
    check_text(arguments["column_stats"])


def _requested_properties(call: Call) -> dict[str, str]:
    """Returns the table properties that the arguments request."""
    values = {
        COLUMNS_KEY: call["columns"],
        CUBE_SIZE_KEY: call["cube_size"],
        TARGET_FILE_BYTES_KEY: call["target_file_bytes"],
        COLUMN_STATS_KEY: call["column_stats"],
    }
    return {key: str(value) for key, value in values.items() if value is not None}


def _checked(configuration: dict[str, str], snapshot: TableSnapshot) -> None:
    IndexConfiguration.of(configuration, snapshot.schema, snapshot.latest_revision, snapshot.partition_columns)


def _find(call: Call, requested: dict[str, str]) -> tuple[ManagedTable, bool]:
    """Returns the table and whether it was converted; validates all arguments before a conversion."""
    source = ParquetSource.find(call.spark, call["table"]) if call["convert"] else None
    if source is None:
        try:
            return ManagedTable.find(call.spark, call["table"]), False
        except TableError as error:
            if error.code == "USE_NOT_A_DELTA_TABLE" and not call["convert"]:
                error.message += " To convert a Parquet table in place, add convert => true."
            raise
    IndexConfiguration.of(requested, source.schema, None, source.partition_columns)
    with described_jobs(call.spark, f"USE index: converting {call['table']}"):
        source.convert()
    return ManagedTable.find(call.spark, source.delta_name), True


def _run(call: Call) -> DataFrame:
    requested = _requested_properties(call)
    table, converted = _find(call, requested)
    transaction = table.transaction(call.spark)
    snapshot = TableSnapshot.of(transaction.state(), table.location)
    _checked(snapshot.configuration | requested, snapshot)
    changed = {key: value for key, value in requested.items() if snapshot.configuration.get(key) != value}
    version = _set(transaction, changed) if changed else None
    with described_jobs(call.spark, f"USE index: {table.name}"):
        unindexed = snapshot.unindexed_total
    advice, message = _advice(table.name, snapshot, requested, changed, unindexed.files)
    row = IndexRow(table.name, requested, version, converted, unindexed.files, unindexed.bytes, advice, message)
    return data_frame_of(call.spark, IndexRow, [row])


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
    call = f"CALL use.optimize(table => '{name.replace(chr(39), chr(39) * 2)}'"
    latest = snapshot.latest_revision
    if latest is not None and COLUMNS_KEY in changed:
        index = IndexConfiguration.of(
            snapshot.configuration | requested, snapshot.schema, latest, snapshot.partition_columns
        )
        if index is None:
            raise IndexConfigurationError.no_columns(name, OPERATION)
        if index.transformers != latest.transformers:
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


INDEX = Procedure(
    "index",
    "Sets the index properties of a Delta table. No data file changes; use.optimize indexes the existing files.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path; parquet.`path` with convert."),
        Parameter("columns", "STRING", "Columns to index, separated by commas, such as 'a,b:hashing'."),
        Parameter("cube_size", "BIGINT", "Rows per inner cube. By default, the property does not change.", None),
        Parameter(
            "target_file_bytes",
            "BIGINT",
            "Target size of data files, in bytes. By default, the property does not change.",
            None,
        ),
        Parameter("column_stats", "STRING", 'Known ranges as JSON, such as {"a_min": 0, "a_max": 100}.', None),
        Parameter("convert", "BOOLEAN", "First converts a Parquet table to Delta in place.", False),
    ),
    ddl_of(IndexRow),
    _run,
    _validate,
)
