"""Methods that ``attach`` adds to PySpark's DataFrames, which have no place for those of other packages."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from catalog.errors import NotSupportedError
from catalog.jvm.java_errors import as_one_line
from procedures.calls.approximate import APPROXIMATE, answer_by_group, request_of
from sql_ext.remote_calls import is_client


def tolerance_by_group(query: DataFrame, tolerance: float = 0.05, **arguments: Any) -> DataFrame:
    """Answers an aggregate query from samples, as a DataFrame with one row per group.

    ``attach`` also offers it as a method of DataFrames: ``df.tolerance(0.1)``.

    Args:
        query: a DataFrame of an attached session.
        tolerance: half the length of each interval at most, in proportion to the estimate.
        arguments: the other arguments of ``tolerance``, by name.

    Returns:
        The columns of the query, with the ends of the interval of each aggregate in columns with ``_lower`` and
        ``_upper`` behind its name, and ``met`` and ``fraction``.

    Raises:
        InvalidArgumentError: an argument is out of range.
        UnknownNameError: there is no such argument.
        NotSupportedError: see ``tolerance``.
        ToleranceNotMetError: the tolerance is not reached, and ``on_miss`` is ``error``.
    """
    if is_client(query.sparkSession):
        raise NotSupportedError("tolerance takes the text of a query, not a DataFrame, in a Spark Connect client.")
    checked = APPROXIMATE.checked({"query": "SELECT", "tolerance": tolerance, **arguments})
    with as_one_line(query.sparkSession):
        return answer_by_group(query, request_of(checked))


def add_dataframe_methods() -> None:
    """Adds ``df.tolerance``; where PySpark or another package has a method of the name, theirs stays."""
    if not hasattr(ClassicDataFrame, "tolerance"):
        ClassicDataFrame.tolerance = tolerance_by_group  # type: ignore[attr-defined]
