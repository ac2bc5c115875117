"""Sessions on one machine: their settings, an existing session, and what a start prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sql_ext
from catalog.errors import InvalidArgumentError
from sql_ext.local_session import with_quick_start, with_small_tasks

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS, SNAPSHOT = "spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"
JAVA, CODEGEN = "spark.driver.extraJavaOptions", "spark.sql.codegen.wholeStage"


def test_tasks_for_one_machine():
    assert with_small_tasks({}, 2) == {PARTITIONS: "4", SNAPSHOT: "4"}
    assert with_small_tasks({PARTITIONS: "7"}, 16) == {PARTITIONS: "7", SNAPSHOT: "16"}
    assert PARTITIONS in with_small_tasks({"spark.master": "local[*]"}, 1)
    assert PARTITIONS not in with_small_tasks({"spark.master": "spark://host:7077"}, 1)


def test_short_sessions_compile_little():
    settings = with_quick_start({JAVA: "-Da=b"}, {})
    assert settings[JAVA] == "-XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m -XX:+UseSerialGC -Xmn256m -Da=b"
    assert "-Xmn" not in with_quick_start({"spark.driver.memory": "200m"}, {})[JAVA]
    assert settings[CODEGEN] == "false"
    assert with_quick_start({CODEGEN: "true"}, {})[CODEGEN] == "true"
    cluster = {"spark.master": "yarn"}
    assert with_quick_start(cluster, {}) == cluster


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_a_collector_of_the_caller_stays_the_only_one(variable):
    assert "Serial" not in with_quick_start({JAVA: "-XX:+UseZGC"}, {})[JAVA]
    assert "Serial" not in with_quick_start({}, {variable: "-XX:+UseParallelGC"})[JAVA]


def test_an_existing_session_is_returned(spark, tmp_path, set_conf, monkeypatch):
    # ``createDataFrame`` makes its session the active one, so another test may have left a session of its own here.
    monkeypatch.setattr(SparkSession, "_activeSession", spark)
    set_conf(PARTITIONS, "3")
    assert sql_ext.session(**{PARTITIONS: "5"}) is spark
    assert spark.conf.get(PARTITIONS) == "5"
    place = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    assert sql_ext.session(place) is not None
    with pytest.raises(InvalidArgumentError, match="warehouse of the existing session"):
        sql_ext.session(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"spark\.driver\.memory"):
        sql_ext.session(**{"spark.driver.memory": "3g"})
    assert spark.conf.get(PARTITIONS) == "5"


# Tasks of the first query set the confs of the session again, which no query has done before.
PROGRAM = """
import pathlib
import sql_ext
spark = sql_ext.session("wh", **{"spark.qbeast.use.joins.keys": "5000"})
pathlib.Path("rows.csv").write_text("a,b\\n1,2\\n")
assert spark.read.csv("rows.csv", header=True, inferSchema=True).dtypes[0][1] == "int"
spark.sql("CREATE TABLE t (a INT) USING delta TBLPROPERTIES ('use.index.columns' = 'a')")
spark.sql("INSERT INTO t SELECT id FROM range(9)")
print(spark.sql("CALL use.optimize('t')").first().state, spark.table("t").count())
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [("-c", PROGRAM), ("-m", "sql_ext", "sql", "SELECT 1 AS one")], ids=["api", "cli"])
def test_nothing_is_printed_but_results(tmp_path, program):
    done = subprocess.run(
        [sys.executable, *program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[-1] in ("9", "1")
