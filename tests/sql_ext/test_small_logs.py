"""Delta keeps the files of a small log in few partitions, so that planning a query takes few tasks."""

import pytest

KEY = "spark.databricks.delta.snapshotPartitions"


def _partitions(spark, path):
    log = spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path))
    return log.unsafeVolatileSnapshot().stateDS().rdd().getNumPartitions()


@pytest.mark.parametrize(("given", "expected"), [(None, 1), ("7", 7)])
def test_a_small_log_has_one_partition_unless_its_owner_wants_more(spark, tmp_path, given, expected):
    session = spark.newSession()
    if given is None:
        session.conf.unset(KEY)
    else:
        session.conf.set(KEY, given)
    path = tmp_path / "t"
    session.range(20).write.format("delta").save(str(path))
    before = session._jsparkSession.getActiveSession()
    assert session.read.format("delta").load(str(path)).where("id < 5").count() == 5
    assert _partitions(spark, path) == expected
    assert session._jsparkSession.getActiveSession().equals(before)
    session.range(20, 30).write.format("delta").mode("append").save(str(path))
    assert session.read.format("delta").load(str(path)).where("id < 25").count() == 25
    assert _partitions(spark, path) == expected
