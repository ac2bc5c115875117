"""Methods that ``attach`` adds to PySpark's DataFrames, which have no place for those of other packages."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame


def add_dataframe_methods() -> None:
    """Adds ``df.tolerance``; where PySpark or another package has a method of the name, theirs stays."""
    if not hasattr(ClassicDataFrame, "tolerance"):
        ClassicDataFrame.tolerance = _tolerance  # type: ignore[attr-defined]


def _tolerance(query: DataFrame, tolerance: float = 0.05, **arguments: Any) -> DataFrame:
    """Answers an aggregate query from samples; see ``sql_ext.tolerance_by_group``."""
    from sql_ext.sampling import tolerance_by_group

    return tolerance_by_group(query, tolerance, **arguments)
