"""The sample of a table by which candidates for index columns are measured."""

from pyspark.sql.types import StringType

from catalog.columns.column_names import FoundColumn
from procedures.insight.recommendation.conditions import Comparison
from procedures.insight.recommendation.table_sample import take_sample, with_values
from procedures.insight.recommendation.workload import WorkloadQuery


def test_of_long_texts_the_driver_gets_the_beginning_which_values_of_conditions_are_compared_with(spark):
    texts = ["long" * 1_000, "b", None]
    rows = spark.createDataFrame([(text,) for text in texts], "s STRING").coalesce(1)
    columns = {"s": FoundColumn(("s",), ("s",), StringType())}
    sample = take_sample(rows, columns, (), 3, 3, lambda rows: rows).columns["s"]
    assert sample.values.tolist() == [b"long" * 32, b"b", b""]
    assert (sample.smallest, sample.largest) == (b"b", b"long" * 32)
    query = WorkloadQuery(1, Comparison("s", "=", (f"'{texts[0]}'",)))
    assert with_values(spark, query, columns).values == (sample.largest,)
