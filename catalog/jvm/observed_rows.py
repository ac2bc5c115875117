"""Rows for the driver, and facts about all rows, from one Spark job."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.jvm.java_values import java_data

if TYPE_CHECKING:
    import pyarrow as pa

_SEED = 42
# No row is below it, and the optimizer does not know that: a filter that it could decide would remove the whole query.
_NO_ROW = -1.0


def collect_observed(
    rows: DataFrame, facts: Mapping[str, Column], columns: Mapping[str, Column], share: float
) -> tuple[dict[str, Any], pa.Table]:
    """Collects columns of a random sample of rows, and aggregates all rows on the way.

    Args:
        rows: the rows.
        facts: aggregates over all rows, by name.
        columns: what is collected, by name.
        share: probability with which a row is collected; 0 for none, 1 for all.

    Returns:
        The values of the aggregates by name, and the columns of the sample.
    """
    name = f"use_{uuid.uuid4().hex}"
    observed = rows.observe(name, *[fact.alias(key) for key, fact in facts.items()])
    if share < 1.0:
        # Not DataFrame.sample: over an indexed source that would be a sample by weight, of low weights only.
        observed = observed.where(F.rand(_SEED) < (share if share > 0.0 else _NO_ROW))
    collected = observed.select(*[column.alias(key) for key, column in columns.items()])
    table = collected.toArrow()
    metrics = java_data(collected).queryExecution().observedMetrics()
    row = metrics.apply(name)
    return {key: _plain(row.get(i)) for i, key in enumerate(facts)}, table


def _plain(value: Any) -> Any:
    """A value of a row of the JVM: Py4J has converted numbers and bytes, and sequences are left."""
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    return tuple(value.apply(i) for i in range(value.length()))
