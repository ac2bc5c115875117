"""The sample of a table and the values of literals, read with Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, DoubleType, NumericType, StringType, TimestampNTZType, TimestampType

from catalog.columns.column_names import FoundColumn
from catalog.jvm.observed_rows import collect_observed
from catalog.predicates.conditions import Comparison, Unknown, leaves, with_leaves
from catalog.predicates.operators import sql_text
from catalog.properties.index_properties import indexable_type
from procedures.insight.recommendation.conditions import QueryCondition, bound
from procedures.insight.recommendation.simulated_layout import SampledColumn, TableSample
from procedures.insight.recommendation.workload import WorkloadQuery
from procedures.layout.row_measures import sampled_value

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = "rows"


def has_ranges(data_type: DataType) -> bool:
    """Returns whether files have ranges of values for columns of a type."""
    if isinstance(data_type, StringType):
        return indexable_type(data_type) is not None
    return isinstance(data_type, (NumericType, DateType, TimestampType, TimestampNTZType))


def take_sample(
    rows: DataFrame,
    columns: Mapping[str, FoundColumn],
    partitions: Sequence[str],
    expected: int | None,
    sample_rows: int,
    target_rows_of: Callable[[int], int],
) -> TableSample:
    """Takes a random sample of rows, counts all of them and finds the ends of the columns, in one Spark job.

    Args:
        rows: all rows of the table.
        columns: the columns to read, by name.
        partitions: names of the partition columns among them.
        expected: number of rows of the table; None if the log does not record it.
        sample_rows: number of rows that the sample should have.
        target_rows_of: returns the rows of a file of the target size, by the number of all rows.
    """
    total = rows.count() if expected is None else expected
    collected, facts = {}, {_ROWS: F.count(F.lit(1))}
    for number, column in enumerate(columns.values()):
        value = F.col(column.name)
        ordered = sampled_value(column.data_type, value)
        collected[f"v{number}"], collected[f"h{number}"] = ordered, F.hash(value)
        facts[f"low{number}"], facts[f"high{number}"] = F.min(ordered), F.max(ordered)
    counted, table = collect_observed(rows, facts, collected, min(1.0, sample_rows / max(total, 1)))
    sampled = {
        name: _sampled_column(table, number, _end(counted[f"low{number}"]), _end(counted[f"high{number}"]))
        for number, name in enumerate(columns)
    }
    return TableSample(sampled, tuple(partitions), counted[_ROWS], target_rows_of(counted[_ROWS]))


def _end(value: Any) -> Any:
    """The smallest or largest value of a column; NaN is the largest double, as in Spark."""
    return np.inf if isinstance(value, float) and np.isnan(value) else value


def _sampled_column(table: pa.Table, number: int, smallest: Any, largest: Any) -> SampledColumn:
    value = table.column(f"v{number}").combine_chunks()
    nulls = ~value.is_valid().to_numpy(zero_copy_only=False)
    values: NDArray[Any]
    if str(value.type) == "double":
        values = np.nan_to_num(
            value.fill_null(0.0).to_numpy(zero_copy_only=False), nan=np.inf, posinf=np.inf, neginf=-np.inf
        )
    else:
        values = value.fill_null(b"").to_numpy(zero_copy_only=False).astype(object)
    return SampledColumn(values, nulls, table.column(f"h{number}").to_numpy(), smallest, largest)


def with_values(spark: SparkSession, query: WorkloadQuery, columns: Mapping[str, FoundColumn]) -> QueryCondition:
    """Returns the condition of a query with the values of its literals; no Spark job runs.

    Args:
        spark: session whose time zone and settings apply.
        query: a parsed query.
        columns: the table's columns, by name.
    """
    comparisons = [leaf for leaf in leaves(query.condition) if isinstance(leaf, Comparison)]
    values: dict[tuple[str, str], Any] = {}
    for comparison in comparisons:
        data_type = columns[comparison.column].data_type
        for text in comparison.values:
            values.setdefault((comparison.column, text), _value(spark, text, data_type))
    condition = bound(query.condition, lambda column, text: values[column, text])

    def leaf(node: Comparison[str] | Unknown) -> QueryCondition:
        if isinstance(node, Unknown) or has_ranges(columns[node.column].data_type):
            return node
        type_name = columns[node.column].type_name
        return Unknown(f"{node.column} {sql_text(node.operator)}", f"files have no ranges of {type_name}")

    return with_leaves(condition, leaf)


def _value(spark: SparkSession, text: str, data_type: DataType) -> Any:
    """Returns a literal as double or bytes in the order of a column's values; None if it has no such value."""
    if not has_ranges(data_type):
        return None
    target = DoubleType() if isinstance(data_type, NumericType) else data_type
    try:
        literal = F.expr(text).try_cast(target)
        # As long as sampled values, or no value would be equal to a long text.
        ordered = sampled_value(data_type, literal)
        if isinstance(data_type, StringType):
            is_text = F.lit(spark.sql(f"SELECT {text} AS value").schema[0].dataType.typeName() == "string")
            ordered = F.when(is_text, ordered)
        value = spark.sql("SELECT 1").select(ordered.alias("value")).collect()[0].value
    except PySparkException:
        return None
    return bytes(value) if isinstance(value, bytearray) else value
