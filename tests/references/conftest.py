"""The tables that the statements of the reference documents are tried on."""

import pytest
from tables import NUMBERS, create, numbers


@pytest.fixture(scope="session")
def indexed(spark):
    """A table that was indexed once, with an unindexed append after it; tests leave it as it is."""
    table = create(spark, "default.reference", NUMBERS, index="x,y", cube_size=200, file_bytes="12kb")
    table.append(numbers(spark, 1500)).index()
    table.append(numbers(spark, 100, start=1500))
    yield table
    spark.sql(f"DROP TABLE {table.name}")
