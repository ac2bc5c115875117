"""Disjoint samples of a query, and answers of aggregate queries from samples."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import NotAttachedError, NotSupportedError
from catalog.jvm.java_errors import as_one_line
from catalog.jvm.query_trees import sample_between
from catalog.jvm.read_report import planned_reads
from procedures.calls.approximate import APPROXIMATE, request_of
from procedures.insight.approximation.answer import Answer
from procedures.insight.approximation.answer_rows import ApproximateRow
from sql_ext.attachment import call
from sql_ext.draws import checked_bounds
from sql_ext.facade.rows import typed_rows
from sql_ext.remote_calls import is_client


def sample(data: DataFrame, fraction: float, *, draw: int = 1) -> DataFrame:
    """Returns one of several disjoint samples of a query over an indexed table.

    The draws of one fraction share no row. If its reciprocal is whole, they contain all rows together. Draw 1 is
    ``data.sample(fraction)``. Each draw contains the same rows whenever it is taken from the same version, and reads
    the files that hold them only.

    Args:
        data: a query of an attached session, below which a sample follows the weights.
        fraction: of the rows, above 0, at most 1.
        draw: number of the sample, from 1 to the whole part of ``1 / fraction``.

    Raises:
        InvalidArgumentError: a number is out of range.
        NotSupportedError: Spark would take the sample itself, so that draws might share rows; or the session is a Spark
            Connect client.
    """
    lower, upper = checked_bounds(fraction, draw)
    if is_client(data.sparkSession):
        raise NotSupportedError("sample needs the driver's own SparkSession, not a Spark Connect client.")
    found = sample_between(data, lower, upper)
    for refused in planned_reads(found).samples:
        raise NotSupportedError(
            f"Spark would take this sample itself ({refused.reason}: {refused.detail}), so that draws might share rows."
        )
    return found


def tolerance(
    query: DataFrame | str,
    tolerance: float = 0.05,
    *,
    confidence: float = 0.95,
    max_fraction: float = 0.5,
    on_miss: str = "exact",
    absolute: bool = False,
    per_group: bool = False,
    dry_run: bool = False,
) -> list[ApproximateRow]:
    """Answers an aggregate query from samples of an indexed table, as ``CALL use.approximate`` does.

    Args:
        query: a DataFrame of an attached session, or the text of a query for the active session.
        tolerance: half the length of each interval at most, in proportion to the estimate.
        confidence: probability with which the intervals contain the exact answer.
        max_fraction: fraction of the rows to sample at most.
        on_miss: what happens if the tolerance is not reached: ``exact``, ``error`` or ``estimate``.
        absolute: whether the tolerance is in the unit of the aggregates.
        per_group: whether each interval has the confidence, else all intervals together.
        dry_run: whether to read the first sample only.

    Returns:
        A row for each aggregate of each group.

    Raises:
        InvalidArgumentError: an argument is out of range.
        NotSupportedError: the query cannot be answered from a sample, or is a DataFrame of a Spark Connect client.
        ToleranceNotMetError: the tolerance is not reached, and ``on_miss`` is ``error``.
        NotAttachedError: the text of a query is given, and there is no active session.
    """
    arguments: dict[str, Any] = {
        "tolerance": tolerance,
        "confidence": confidence,
        "max_fraction": max_fraction,
        "on_miss": on_miss,
        "absolute": absolute,
        "per_group": per_group,
        "dry_run": dry_run,
    }
    if isinstance(query, str):
        spark = SparkSession.getActiveSession()
        if spark is None and SparkContext._active_spark_context is not None:
            # Only the thread that has made the session has it as its active one.
            spark = SparkSession.builder.getOrCreate()
        if spark is None:
            raise NotAttachedError("There is no active Spark session: create one, and call sql_ext.attach(spark).")
        return typed_rows(ApproximateRow, call(spark, "approximate", query=query, **arguments))
    if is_client(query.sparkSession):
        raise NotSupportedError("tolerance takes the text of a query, not a DataFrame, in a Spark Connect client.")
    checked = APPROXIMATE.checked({"query": "SELECT", **arguments})
    with as_one_line(query.sparkSession):
        return Answer.of(query, request_of(checked)).rows()
