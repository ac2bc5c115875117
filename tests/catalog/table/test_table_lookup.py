"""Finding tables from threads that know no session, as those of a service are."""

import shutil
import threading

import pytest

from catalog.errors import TableError
from catalog.table.managed_table import ManagedTable


def test_a_path_in_a_thread_without_an_active_session(spark, tmp_path):
    spark.range(3).write.format("delta").save(f"{tmp_path}/t")
    found = []

    def find():
        active = spark._jvm.org.apache.spark.sql.SparkSession
        active.clearActiveSession()
        found.append(ManagedTable.find(spark.newSession(), f"delta.`{tmp_path}/t`").location)
        found.append(active.getActiveSession().isDefined())

    thread = threading.Thread(target=find)
    thread.start()
    thread.join()
    assert found == [f"file:{tmp_path}/t", False]


def test_a_table_without_its_folder(spark, tmp_path):
    spark.sql(f"CREATE TABLE without_folder USING delta LOCATION '{tmp_path}/t' AS SELECT 1 AS id")
    try:
        shutil.rmtree(tmp_path / "t")
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        with pytest.raises(TableError, match="its folder was moved"):
            ManagedTable.find(spark, "default.without_folder")
        with pytest.raises(TableError, match=r"Did you mean default\.without_folder"):
            ManagedTable.find(spark, "default.without_folders")
    finally:
        spark.sql("DROP TABLE without_folder")


def test_a_temporary_view_is_no_table_of_a_schema(spark):
    spark.range(1).createOrReplaceTempView("only_a_view")
    try:
        with pytest.raises(TableError, match="was not found") as refused:
            ManagedTable.find(spark, "default.only_a_view")
        assert "Did you mean" not in refused.value.message
    finally:
        spark.catalog.dropTempView("only_a_view")
