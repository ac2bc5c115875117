"""The listing of the metastore: Delta tables only, whatever state they are in."""

import shutil

from tables import NUMBERS, numbers

from catalog.jvm.metastore import KnownTable, tables_of


def test_delta_tables_and_nothing_else(spark, new_table):
    table = new_table(NUMBERS)
    spark.sql("CREATE DATABASE of_metastore")
    try:
        odd = "of_metastore.`1b`"
        spark.sql(f"CREATE TABLE {odd} (a INT) USING DELTA")
        spark.sql("CREATE TABLE of_metastore.plain (a INT) USING parquet")
        spark.sql("CREATE VIEW of_metastore.seen AS SELECT 1 AS a")
        numbers(spark, 1).createOrReplaceTempView("passing")
        found = {known.full_name: known for known in tables_of(spark)}
        assert found[table.managed.name] == KnownTable(
            "spark_catalog", "default", table.name.removeprefix("default."), table.managed.location, "delta"
        )
        of_database = {known.name for known in found.values() if known.namespace == "of_metastore"}
        assert of_database == {"1b"}
        assert f"spark_catalog.{odd}" in found
        assert not any(known.name == "passing" for known in found.values())
    finally:
        spark.sql("DROP DATABASE of_metastore CASCADE")
        spark.catalog.dropTempView("passing")


def test_a_table_without_its_folder_is_listed_like_any_other(spark, new_table):
    table, other = new_table(NUMBERS), new_table(NUMBERS)
    shutil.rmtree(table.path)
    assert {f"spark_catalog.{table.name}", f"spark_catalog.{other.name}"} <= {
        known.full_name for known in tables_of(spark)
    }
