"""Statements reach Delta's parser, and SQL parameters Spark's."""


def test_clauses_that_delta_reads_itself(spark, new_table):
    """CLUSTER BY is Delta's to read, although the statement is Spark's."""
    table = new_table("a INT, b INT", tail="CLUSTER BY (a)")
    assert spark.sql(f"DESCRIBE DETAIL {table.name}").collect()[0].clusteringColumns == ["a"]
    assert spark.sql("SELECT :x + 1 AS y", args={"x": 1}).collect()[0].y == 2
