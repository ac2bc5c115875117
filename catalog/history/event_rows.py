"""Events as rows, which are read from commits and from files below ``_use/`` and combined into one history."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from catalog.epoch_millis import LAST_MILLIS
from catalog.history.events import (
    COMMITTED,
    DELETED,
    EVENT_FIELDS,
    EVENT_KEY,
    FAILED,
    IGNORED,
    OPERATION,
    OPTIMIZATIONS_SCHEMA,
)
from catalog.jvm.json_lines import json_lines
from catalog.table.managed_table import ManagedTable

_IN_COMMIT = (
    f"{EVENT_FIELDS}, kind string, trigger string, reason string, parameters map<string,string>, "
    "table_bytes bigint, overflow_file string"
)
_AROUND = "state string, version bigint, error string, error_code string"
_NOT_WRITTEN = (FAILED, IGNORED)
# The schema of one event.
EVENT_ROW = f"{_IN_COMMIT}, {_AROUND}"


def committed_events(history: DataFrame) -> DataFrame:
    """Returns the events in a table's commits; columns as in ``EVENT_ROW``.

    Args:
        history: what ``DESCRIBE HISTORY`` gives.
    """
    event = F.from_json(F.col("operationParameters")[EVENT_KEY], _IN_COMMIT)
    return (
        history.where(F.col("operation") == OPERATION)
        .select(F.col("version"), event.alias("e"))
        .where("e.write_id IS NOT NULL")
        .select(
            "e.*",
            F.lit(COMMITTED).alias("state"),
            "version",
            F.lit(None).cast("string").alias("error"),
            F.lit(None).cast("string").alias("error_code"),
        )
    )


def events_in_log(table: ManagedTable, limit: int | None = None) -> DataFrame:
    """Returns the events in a table's log; columns as in ``EVENT_ROW``.

    Args:
        table: the table.
        limit: number of the newest commits to read; all by default.
    """
    return committed_events(table.history(limit))


def stored_events(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Returns the events in files with one JSON object per line; other lines are skipped.

    Args:
        spark: session.
        files: URIs, at least one.
    """
    rows = json_lines(spark, files, EVENT_ROW)
    return rows.where(F.col("write_id").isNotNull() & F.col("state").isin(COMMITTED, FAILED, IGNORED, DELETED))


def united(logged: DataFrame, stored: DataFrame, table_id: str) -> DataFrame:
    """Returns one row per write id: from the log, else from a stored commit, else from a stored failure.

    Stored events of another table, which was there before, are left out: their table id is not in the log.

    Args:
        logged: ``committed_events``.
        stored: ``stored_events``.
        table_id: id of the table, which may have no event in the log.
    """
    rank = F.when(F.col("state") == COMMITTED, 1).otherwise(2)
    stored = stored.where("table_id IS NOT NULL").withColumn("rank", rank)
    # In one partition, windows need no exchange, and the whole query is one Spark job.
    ranked = logged.withColumn("rank", F.lit(0)).unionByName(stored).coalesce(1)
    is_own = (F.min("rank").over(Window.partitionBy("table_id")) == 0) | (F.col("table_id") == table_id)
    ranked = ranked.withColumn("is_own", (F.col("rank") == 0) | is_own).where("is_own").drop("is_own")
    best = Window.partitionBy("write_id").orderBy("rank", F.col("finished_at").desc())
    return ranked.withColumn("place", F.row_number().over(best)).where("place = 1").drop("rank", "place")


def with_lists(events: DataFrame, files: Sequence[str]) -> DataFrame:
    """Adds the lists of files to events that were too long for a commit.

    Args:
        events: rows as in ``EVENT_ROW``.
        files: URIs of whole events.
    """
    if not files:
        return events
    lists = (
        json_lines(events.sparkSession, files, EVENT_FIELDS)
        .select(
            F.col("write_id").alias("of"),
            F.col("input_files_stats").alias("inputs"),
            F.col("output_files_stats").alias("outputs"),
        )
        .dropDuplicates(["of"])
    )
    belongs = (F.col("write_id") == F.col("of")) & F.col("overflow_file").isNotNull()
    return (
        events.join(lists, belongs, "left")
        .withColumn("input_files_stats", F.coalesce("inputs", "input_files_stats"))
        .withColumn("output_files_stats", F.coalesce("outputs", "output_files_stats"))
        .drop("of", "inputs", "outputs")
    )


def history_of(events: DataFrame) -> DataFrame:
    """Returns the rows of ``<table>.optimizations``, newest first.

    Write amplification is the sum of bytes that optimizations have written up to and with the row, over the bytes of
    the table after it.

    Args:
        events: rows as in ``EVENT_ROW``, one per write id.
    """
    committed = F.col("state") == COMMITTED
    so_far = Window.partitionBy("table_id").orderBy("version").rowsBetween(Window.unboundedPreceding, 0)
    # As floating point: sums of bytes in events of other writers may overflow.
    bytes_written = F.when(committed, F.col("output_files_stats.bytes").cast("double"))
    counted = F.col("state").isin(COMMITTED, DELETED) & (F.col("table_bytes") > 0)
    amplification = F.when(counted, F.sum(bytes_written).over(so_far) / F.col("table_bytes"))
    return (
        events.coalesce(1)
        .withColumn("write_amplification", amplification)
        .withColumn("input_files_stats", _known_inputs())
        .withColumn("output_files_stats", F.when(~F.col("state").isin(*_NOT_WRITTEN), F.col("output_files_stats")))
        .withColumn("started_time", _moment("started_at"))
        .withColumn("finished_time", _moment("finished_at"))
        .orderBy(F.col("finished_at").desc(), F.col("version").desc_nulls_last(), "write_id")
        .select(*_names(OPTIMIZATIONS_SCHEMA))
    )


def _known_inputs() -> Column:
    """Returns the statistics, with NULL where earlier versions stored zeros for files that were not written."""
    inputs = F.col("input_files_stats")
    totals = inputs
    for name in ("num_cubes", "num_blocks", "avg_num_blocks_per_file", "avg_block_element_count_per_file"):
        totals = totals.withField(name, F.lit(None).cast("double" if name.startswith("avg") else "bigint"))
    known = F.when(inputs["num_files"] > 0, totals)
    return F.when(F.col("state").isin(*_NOT_WRITTEN), known).otherwise(inputs)


def _moment(millis: str) -> Column:
    """Returns the timestamp of epoch milliseconds; NULL if out of range, such as a year after 9998."""
    return F.when(F.col(millis).between(0, LAST_MILLIS), F.timestamp_millis(millis))


def _names(ddl: str) -> list[str]:
    """Returns the names of the columns of a schema whose nested fields are written with a colon."""
    return [field.split()[0] for field in ddl.split(", ")]
