"""Finding tables from threads that know no session, as those of a service are."""

import threading

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
