"""The answer of a query as a result set: one row per group, with the columns of the query and the ends of intervals."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, StructType

from catalog.jvm.local_rows import local_data_frame
from procedures.insight.approximation.aggregate_query import Output
from procedures.insight.approximation.answer_rows import NO_INTERVAL, ApproximateRow

LOWER, UPPER = "_lower", "_upper"


def rows_by_group(
    spark: SparkSession, rows: Sequence[ApproximateRow], outputs: Sequence[Output], schema: StructType
) -> DataFrame:
    """Returns one row per group.

    Args:
        spark: session of the rows.
        rows: an answer: a row for each aggregate of each group, group by group.
        outputs: columns of the query.
        schema: of the query.

    Returns:
        The columns of the query, keys first, with their types, then aggregates as DOUBLE, each followed by the ends of
        its interval, which are named like it with ``_lower`` and ``_upper``; ``met`` BOOLEAN, whether all intervals of
        the group are within the tolerance; ``fraction`` DOUBLE, of the weights that were read, 1 for an exact answer.
    """
    keys = [output.name for output in outputs if isinstance(output.what, int)]
    aggregates = [output.name for output in outputs if not isinstance(output.what, int)]
    groups = _groups(rows, keys)
    ends = [(name, end) for name in aggregates for end in ("estimate", "lower", "upper")]
    values = []
    for found in groups:
        numbers = [getattr(found[name], end) if name in found else None for name, end in ends]
        met = all(bool(row.met) for row in found.values())
        first = next(iter(found.values()))
        values.append((*(first.keys[key] for key in keys), *numbers, met, first.fraction))
    count = len(keys)
    types = ["string"] * count + ["double"] * len(ends) + ["boolean", "double"]
    data = local_data_frame(spark, values, ", ".join(f"c{n} {name}" for n, name in enumerate(types)))
    position = {output.name: number for number, output in enumerate(outputs)}
    columns = []
    for number, key in enumerate(keys):
        data_type = schema.fields[position[key]].dataType
        column = F.col(f"c{number}")
        columns.append((column.cast(data_type) if isinstance(data_type, AtomicType) else column).alias(key))
    suffixes = {"estimate": "", "lower": LOWER, "upper": UPPER}
    for number, (name, end) in enumerate(ends, start=count):
        columns.append(F.col(f"c{number}").alias(f"{name}{suffixes[end]}"))
    columns += [F.col(f"c{count + len(ends)}").alias("met"), F.col(f"c{count + len(ends) + 1}").alias("fraction")]
    return data.select(*columns)


def _groups(rows: Sequence[ApproximateRow], keys: Sequence[str]) -> list[dict[str, ApproximateRow]]:
    """The rows of each group by aggregate.

    A group begins where an aggregate comes again. Its keys do not identify it: not all keys need to be columns of the
    query, and different keys can have the same text.
    """
    groups: list[dict[str, ApproximateRow]] = []
    for row in rows:
        if row.aggregate is None or row.keys.keys() != set(keys):
            continue
        if len(groups) > 1 and row.reason == NO_INTERVAL:
            # It is about all groups.
            continue
        if not groups or row.aggregate in groups[-1]:
            groups.append({})
        groups[-1][row.aggregate] = row
    return groups
