"""Statements reach Delta's parser, and SQL parameters Spark's."""

import pytest
from pyspark.errors import ParseException


def test_clauses_that_delta_reads_itself(spark, new_table):
    """CLUSTER BY is Delta's to read, although the statement is Spark's."""
    table = new_table("a INT, b INT", tail="CLUSTER BY (a)")
    assert spark.sql(f"DESCRIBE DETAIL {table.name}").collect()[0].clusteringColumns == ["a"]
    assert spark.sql("SELECT :x + 1 AS y", args={"x": 1}).collect()[0].y == 2


def test_parameters_in_place_of_literals_of_the_syntax(spark, new_table):
    table = new_table("a INT", tail="COMMENT 'before'")
    spark.sql(f"COMMENT ON TABLE {table.name} IS :c", args={"c": "after"})
    assert spark.catalog.getTable(table.name).description == "after"
    database, name = table.name.split(".")
    assert [row.tableName for row in spark.sql(f"SHOW TABLES IN {database} LIKE ?", args=[name]).collect()] == [name]
    assert spark.sql(f"SELECT * FROM {table.name} TABLESAMPLE (? PERCENT)", args=[10]).count() == 0


def test_an_error_of_a_statement_with_parameters_is_shown(spark):
    with pytest.raises(ParseException, match="SELEC"):
        spark.sql("SELEC :x", args={"x": 1})
