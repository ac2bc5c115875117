"""Levels of files as a column of Spark."""

from pyspark.sql import functions as F

from catalog.files.block_rows import level_column
from otree.level import level_of


def test_levels_are_exact_at_every_power_of_ten(spark):
    counts = [0, *(n for power in range(1, 19) for n in (10**power - 1, 10**power)), 2**63 - 1]
    frame = spark.createDataFrame([(n,) for n in counts], "n bigint")
    assert [r[0] for r in frame.select(level_column(F.col("n"))).collect()] == [level_of(n) for n in counts]
