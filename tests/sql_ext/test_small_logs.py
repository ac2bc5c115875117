"""Delta keeps the files of a small log in few partitions, so that planning a query takes few tasks."""

from pathlib import Path

import pytest
from spark_jobs import jobs_started

KEY = "spark.databricks.delta.snapshotPartitions"


def _snapshot(spark, path):
    log = spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path))
    return log.unsafeVolatileSnapshot()


def _partitions(spark, path):
    return _snapshot(spark, path).stateDS().rdd().getNumPartitions()


@pytest.mark.quick_sample(1)
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


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {} WHERE id = 3",
        "UPDATE {} SET id = 40 WHERE id = 4",
        "MERGE INTO {} t USING (SELECT 5L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "DESCRIBE DETAIL {}",
        "OPTIMIZE {}",
    ],
    ids=lambda statement: statement.split()[0],
)
def test_a_statement_that_reads_a_version_first_keeps_it_in_one_partition(spark, tmp_path, statement):
    session = spark.newSession()
    session.conf.unset(KEY)
    session.range(20).write.format("delta").save(str(tmp_path))
    read = _snapshot(spark, tmp_path)
    assert not read.stateReconstructionTriggered()
    session.sql(statement.format(f"delta.`{tmp_path}`"))
    assert read.stateReconstructionTriggered()
    assert read.stateDS().rdd().getNumPartitions() == 1


def test_a_version_of_the_past_is_kept_in_one_partition(spark, tmp_path):
    session = spark.newSession()
    session.conf.unset(KEY)
    for first in (0, 20):
        session.range(first, first + 20).write.format("delta").mode("append").save(str(tmp_path))
    before = jobs_started(spark)
    assert session.sql(f"SELECT * FROM delta.`{tmp_path}` VERSION AS OF 0 WHERE id < 5").count() == 5
    assert _tasks_from(spark, before) < 20


def _tasks_from(spark, job):
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    jobs = [found.apply(i) for i in range(found.size())]
    return sum(each.numTasks() for each in jobs if each.jobId() >= job)


def test_artifacts_of_a_session_are_not_copied_for_it(spark, tmp_path):
    session = spark.newSession()
    session.conf.unset(KEY)
    session.range(20).write.format("delta").save(str(tmp_path / "t"))
    (tmp_path / "notes.txt").write_text("notes")
    session._jsparkSession.addArtifact(str(tmp_path / "notes.txt"), "Notes.class")
    folders = Path(session._jsparkSession.artifactManager().artifactPath().toString()).parent
    before = set(folders.iterdir())
    assert session.read.format("delta").load(str(tmp_path / "t")).where("id < 5").count() == 5
    assert _partitions(spark, tmp_path / "t") == 1
    assert set(folders.iterdir()) == before


def test_versions_of_a_log_do_not_make_the_listeners_of_queries_again(spark, tmp_path):
    """Each new session of Spark makes all of them, which may have connections and threads."""
    session, made = spark.newSession(), spark.sparkContext._jvm.io.usespark.testing.CountedListener.made
    session.conf.unset(KEY)
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.sql.queryExecutionListeners", "io.usespark.testing.CountedListener")
    try:
        counts = []
        for first in (0, 20, 40):
            session.range(first, first + 20).write.format("delta").mode("append").save(str(tmp_path))
            assert session.read.format("delta").load(str(tmp_path)).where("id < 5").count() == 5
            assert _partitions(spark, tmp_path) == 1
            counts.append(made())
        assert counts[0] == counts[-1]
    finally:
        conf.remove("spark.sql.queryExecutionListeners")
