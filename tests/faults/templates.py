"""The tables that operations work on: made once, and copied for each case."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.state.cancel_requests import request_cancel
from catalog.state.lease import acquire
from catalog.state.plan_claims import GroupClaims
from catalog.state.plan_files import find_plan, plan_ids
from catalog.state.write_records import WriteRecord, record_write
from catalog.table.managed_table import ManagedTable

_ROWS = 30
_INDEX = {"use.index.columns": "x,y", "use.index.cubeSize": "20", "delta.enableDeletionVectors": "false"}
_NO_INDEX = {"delta.enableDeletionVectors": "false"}
# Some files that the newest version does not need must be old enough for any vacuum.
_OLD_FILE = "part-00099-00000000-0000-4000-8000-000000000000-c000.snappy.parquet"


def rows(spark: SparkSession, first: int, count: int = _ROWS) -> DataFrame:
    """Rows whose values follow from their ids."""
    columns = "id", "(id * 7919 % 1009) / 1009D AS x", "CAST(id * 31 % 1000 AS INT) AS y"
    return spark.range(first, first + count).selectExpr(*columns).coalesce(1)


def append(spark: SparkSession, path: Path, first: int, count: int = _ROWS) -> None:
    """Appends rows in one file."""
    rows(spark, first, count).write.format("delta").mode("append").save(str(path))


def _create(spark: SparkSession, path: Path, properties: dict[str, str]) -> None:
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = "id BIGINT, x DOUBLE, y INT"
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta TBLPROPERTIES ({pairs})")


def _appended(spark: SparkSession, path: Path, properties: dict[str, str], files: int = 4) -> None:
    _create(spark, path, properties)
    for number in range(files):
        append(spark, path, number * _ROWS)


def small_files(spark: SparkSession, path: Path) -> None:
    """Four files without an index."""
    _appended(spark, path, _NO_INDEX)


def unindexed(spark: SparkSession, path: Path) -> None:
    """Four files, none of them indexed yet."""
    _appended(spark, path, _INDEX)


def indexed(spark: SparkSession, path: Path) -> None:
    """Indexed files, and two that are not."""
    _appended(spark, path, _INDEX)
    sql_ext.call(spark, "optimize", table=str(path)).collect()
    append(spark, path, 200)
    append(spark, path, 300)


def deleted(spark: SparkSession, path: Path) -> None:
    """Files whose deletion vectors hide a third of their rows."""
    _appended(spark, path, {"delta.enableDeletionVectors": "true"}, 3)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")


def history(spark: SparkSession, path: Path) -> None:
    """A table with replaced files, a protected version, files of events, and a file that no commit names."""
    indexed(spark, path)
    sql_ext.call(spark, "protect", table=str(path), version=2, name="kept").collect()
    sql_ext.call(spark, "optimize", table=str(path)).collect()
    append(spark, path, 400)
    sql_ext.call(spark, "optimize", table=str(path)).collect()
    source = next(path.glob("part-*.parquet"))
    (path / _OLD_FILE).write_bytes(source.read_bytes())


def old_deletes(spark: SparkSession, path: Path) -> None:
    """Deletion vectors, replaced files, and a version that later ones have left behind."""
    deleted(spark, path)
    append(spark, path, 200)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= 200 AND id % 5 = 1")
    append(spark, path, 300)


def planned(spark: SparkSession, path: Path) -> None:
    """Small files, and a stored plan for them."""
    small_files(spark, path)
    sql_ext.call(spark, "plan", table=str(path), columns="x", max_file_bytes=100_000, store=True).collect()


def parquet(spark: SparkSession, path: Path) -> None:
    """Parquet files without a log."""
    rows(spark, 0, 3 * _ROWS).repartition(3).write.parquet(str(path))


def stateful(spark: SparkSession, path: Path) -> None:
    """A table with every kind of state file, as processes that were killed leave them."""
    history(spark, path)
    for call in ("suspend", "plan"):
        more = {"columns": "x", "max_file_bytes": 100_000, "store": True} if call == "plan" else {}
        sql_ext.call(spark, call, table=str(path), **more).collect()
    table, now = ManagedTable.find(spark, str(path)), SYSTEM_CLOCK.now()
    sql_ext.call(spark, "purge", table=str(path), older_than=3, force=True).collect()
    sql_ext.call(spark, "consolidate_log", table=str(path)).collect()
    append(spark, path, 500)
    append(spark, path, 600)
    (plan,) = plan_ids(table)
    stored = find_plan(table, plan, table.snapshot().table_id)
    GroupClaims(table, stored, "killed", "call", SYSTEM_CLOCK).take(1)
    acquire(table, "killed", "call", now)
    request_cancel(table, "killed", now, "somebody")
    record_write(table, WriteRecord(uuid.UUID(int=7).hex, now, ("",)))


TEMPLATES: dict[str, Callable[[SparkSession, Path], None]] = {
    make.__name__: make
    for make in (small_files, unindexed, indexed, deleted, history, old_deletes, planned, parquet, stateful)
}
