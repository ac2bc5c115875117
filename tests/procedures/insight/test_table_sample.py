"""The sample of a table by which candidates for index columns are measured."""

from pyspark.sql.types import StringType

from catalog.columns.column_names import FoundColumn
from procedures.insight.recommendation.table_sample import take_sample


def test_of_long_texts_the_driver_gets_the_beginning_and_the_ends(spark):
    texts = ["long" * 1_000, "b", None]
    rows = spark.createDataFrame([(text,) for text in texts], "s STRING").coalesce(1)
    column = FoundColumn(("s",), ("s",), StringType())
    sample = take_sample(rows, {"s": column}, (), 3, 3, lambda rows: rows).columns["s"]
    assert sample.values.tolist() == [b"long" * 32, b"b", b""]
    assert (sample.smallest, sample.largest) == (b"b", texts[0].encode())
