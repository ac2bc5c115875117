"""Rows go to the partitions that a column numbers, on every line of Spark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from catalog.jvm.row_expressions import key_of_hash, repartition_by_number

_MASK = 0xFFFFFFFF


def murmur(value):
    """The hash of an INT with seed 42, forwards."""

    def rotated(number, bits):
        return (number << bits | number >> 32 - bits) & _MASK

    mixed = rotated((value & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    found = rotated(42 ^ mixed, 13) * 5 + 0xE6546B64 & _MASK
    found ^= 4
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    return found ^ found >> 16


@given(st.integers(0, 2**31 - 1))
def test_the_key_of_a_hash(number):
    assert murmur(key_of_hash(number)) == number


class WithoutIds:
    """A DataFrame of Spark 4.0, which has no ``repartitionById``."""

    def __init__(self, data):
        self.repartition = data.repartition


@pytest.mark.parametrize("line", ["4.0", "this"])
def test_rows_go_to_their_partitions(spark, line):
    rows = spark.range(1000).withColumn("number", (F.col("id") * 7 % 13).cast("int"))
    distributed = repartition_by_number(WithoutIds(rows) if line == "4.0" else rows, 13, F.col("number"))
    found = distributed.select("number", F.spark_partition_id().alias("partition")).distinct().collect()
    assert sorted(map(tuple, found)) == [(number, number) for number in range(13)]
