"""``CALL``: names, arguments, help, and procedures of users, from any thread."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import urlparse
from xml.etree import ElementTree as ET

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark_test import assert_pyspark_df_equal
from tables import NUMBERS, numbers

import sql_ext
from procedures.calls import registry
from procedures.calls.optimize import OPTIMIZE
from procedures.process.application import application
from sql_ext.installed_versions import installed_versions


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Declared, with one file that is not indexed: dry runs always have something to show."""
    return shared_table(NUMBERS, index="x,y").append(numbers(spark, 50))


@pytest.fixture
def registered(spark):
    names = []

    def register(name, run, *parameters, result="n int"):
        names.append(name)
        sql_ext.register_procedure(spark, sql_ext.Procedure(name, "For tests.", parameters, result, run))

    yield register
    for name in names:
        application().own_procedures.pop(name, None)


CALLS = {
    "positional": "CALL use.optimize('{t}', NULL, NULL, 1000, 1, NULL, NULL, NULL, NULL, false, 1, true)",
    "named": "CALL use.optimize(dry_run => true, table => '{t}')",
    "mixed": "CALL use.optimize('{t}', 'UnindexedFiles', dry_run => true)",
    "upper case": "CALL use.OPTIMIZE(TABLE => '{t}', DRY_RUN => TRUE)",
    "camel case": "call use.Optimize('{t}', dry_Run => true)",
    "expressions": "CALL use.optimize(concat('{t}', ''), bytes_per_iter => 500 * 2, dry_run => 1 = 1)",
    "a map": "CALL use.optimize('{t}', dry_run => true, options => map('batch_bytes', '5'))",
    "a path": "CALL use.optimize('{p}', dry_run => true)",
    "a path in delta": "CALL use.optimize('delta.`{p}`', dry_run => true)",
    "three parts": "CALL use.optimize('spark_catalog.{t}', dry_run => true)",
}


@pytest.mark.quick_sample(4)
@pytest.mark.parametrize("statement", CALLS.values(), ids=CALLS)
def test_ways_to_write_a_call(spark, table, statement):
    rows = spark.sql(statement.format(t=table.name, p=table.path))
    assert rows.dtypes == [tuple(part.split()) for part in OPTIMIZE.result.split(", ")]
    (row,) = rows.collect()
    assert (row.state, row.input_files, row.rows) == ("planned", 1, 50)


def test_the_current_database_applies(spark, table):
    spark.sql("USE default")
    name = table.name.removeprefix("default.")
    assert spark.sql(f"CALL use.optimize('{name}', dry_run => true)").collect()[0].state == "planned"


def test_a_call_runs_once(spark, registered):
    calls = []

    def run(call):
        calls.append(1)
        return call.spark.createDataFrame([(len(calls),)], "n int")

    registered("count_calls", run)
    rows = spark.sql("CALL use.count_calls()")
    assert (rows.collect(), rows.collect(), rows.count()) == ([(1,)], [(1,)], 1)
    assert len(calls) == 1


def test_help_lists_procedures_and_every_parameter(spark):
    listed = spark.sql("CALL use.help()").collect()
    assert {r.name for r in listed} >= {"help", "optimize", "vacuum"}
    for name, procedure in registry.procedures().items():
        rows = spark.sql(f"CALL use.help('{name}')").collect()
        results = ["result", "result without details"] if procedure.short else ["result"]
        assert [r.name for r in rows] == [name, *(p.name for p in procedure.parameters), *results]
        assert [r.type for r in rows][1 : -len(results)] == [p.type for p in procedure.parameters]
    assert_pyspark_df_equal(spark.sql("CALL use.help('optimize')"), sql_ext.call(spark, "help", procedure="optimize"))


def test_show_procedures(spark):
    shown = {r.procedure_name for r in spark.sql("SHOW PROCEDURES IN use").collect()}
    assert shown >= {"help", "optimize", "vacuum"}
    described = "\n".join(r[0] for r in spark.sql("DESCRIBE PROCEDURE use.vacuum").collect())
    assert "retention_hours DOUBLE" in described


def test_a_procedure_of_a_user_by_sql_and_python(spark, registered):
    everything = (
        sql_ext.Parameter("s", "STRING", "A text."),
        sql_ext.Parameter("i", "INT", "A number.", 1),
        sql_ext.Parameter("l", "BIGINT", "A number.", 2),
        sql_ext.Parameter("d", "DOUBLE", "A number.", 0.5),
        sql_ext.Parameter("b", "BOOLEAN", "Yes or no.", True),
        sql_ext.Parameter("a", "ARRAY<STRING>", "Texts.", None),
        sql_ext.Parameter("m", "MAP<STRING,STRING>", "Pairs.", {}),
    )

    def run(call):
        values = [call[name] for name in "sildbam"]
        return call.spark.createDataFrame([(repr(values),)], "seen string")

    registered("echo", run, *everything, result="seen string")
    given = (
        "s => 'ä\\'\"', i => -1, l => 9223372036854775807, d => 1.5, b => false, "
        "a => array('x', 'y'), m => map('k', 'v')"
    )
    in_sql = spark.sql(f"CALL use.echo({given})")
    in_python = sql_ext.call(spark, "echo", s="ä'\"", i=-1, l=2**63 - 1, d=1.5, b=False, a=["x", "y"], m={"k": "v"})
    assert_pyspark_df_equal(in_sql, in_python)
    defaults = spark.sql("CALL use.echo('x')").collect()[0].seen
    assert defaults == repr(["x", 1, 2, 0.5, True, None, {}]) == sql_ext.call(spark, "echo", s="x").collect()[0].seen
    for name, value, expected in (
        ("a", "'x'", "an ARRAY<STRING>"),
        ("m", "'k'", "a MAP<STRING,STRING>"),
        ("s", "array('x')", "a STRING"),
        ("i", "array(1)", "an INT"),
    ):
        others = "" if name == "s" else "'x', "
        with pytest.raises(AnalysisException) as refused:
            spark.sql(f"CALL use.echo({others}{name} => {value})")
        assert refused.value.getCondition() == "USE_INVALID_ARGUMENT"
        assert str(refused.value).startswith(f"[USE_INVALID_ARGUMENT] {name} = ")
        assert f"{expected} is expected" in str(refused.value)


def test_errors_of_a_users_procedure_are_clean(spark, registered):
    def python_error(call):
        raise ZeroDivisionError("my\nmistake")

    def jvm_error(call):
        return call.spark.sql("SELECT missing_column FROM VALUES (1) AS t(a)")

    def own_error(call):
        raise sql_ext.UseError("Not today.", code="MY_CODE", sql_state="45000")

    def failing_rows(call):
        return call.spark.range(1).select(F.raise_error(F.lit("late")).alias("n"))

    for run in (python_error, jvm_error, own_error, failing_rows):
        registered(run.__name__, run)
    with pytest.raises(AnalysisException) as found:
        spark.sql("CALL use.python_error()")
    assert found.value.getCondition() == "USE_INTERNAL"
    assert "ZeroDivisionError" in str(found.value)
    assert "Traceback" not in str(found.value)
    assert len(str(found.value).strip().splitlines()) == 1
    with pytest.raises(AnalysisException) as found:
        spark.sql("CALL use.jvm_error()")
    assert found.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    with pytest.raises(AnalysisException) as found:
        spark.sql("CALL use.own_error()")
    assert (found.value.getCondition(), found.value.getSqlState()) == ("MY_CODE", "45000")
    with pytest.raises(Exception, match="late"):
        spark.sql("CALL use.failing_rows()").collect()
    assert spark.sql("CALL use.help()").count() > 3


def test_a_procedure_may_call_another(spark, registered, table):
    def run(call):
        rows = call.spark.sql(f"CALL use.optimize('{table.name}', dry_run => true)").collect()
        return call.spark.createDataFrame([(len(rows),)], "n int")

    registered("nested", run)
    assert spark.sql("CALL use.nested()").collect() == [(1,)]


def test_calls_of_several_threads_at_once(spark, table):
    barrier = threading.Barrier(4)

    def run(number):
        barrier.wait(60)
        statement = f"CALL use.optimize('{table.name}', dry_run => true, max_iterations => {number + 1})"
        return spark.sql(statement).collect()[0].state

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == ["planned"] * 4


def test_a_call_of_a_thread_that_python_never_saw(spark, table):
    statement = f"CALL use.optimize('{table.name}', dry_run => true)"
    threads = spark._jvm.io.usespark.testing.JvmThread
    assert "planned" in threads.sql(spark._jsparkSession, statement)


def test_attaching_again_does_no_harm(spark, table):
    sql_ext.attach(spark)
    assert spark.sql(f"CALL use.optimize('{table.name}', dry_run => true)").count() == 1
    assert spark.newSession().sql("CALL use.help()").count() >= 3


def test_a_client_is_not_attached():
    with pytest.raises(sql_ext.UseError) as refused:
        sql_ext.attach(SimpleNamespace(sql=None))
    assert refused.value.code == "USE_NOT_SUPPORTED"


def test_unpinned_threads_are_refused(spark, monkeypatch):
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    with pytest.raises(sql_ext.UseError, match="PYSPARK_PIN_THREAD") as refused:
        sql_ext.attach(spark)
    assert refused.value.code == "USE_NOT_SUPPORTED"


def test_configure_keeps_what_the_caller_set(tmp_path, monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setattr("sql_ext.delta_jars._account_home", lambda: str(tmp_path))  # no cache of Ivy
    builder = SparkSession.Builder()
    builder.config("spark.jars", "/mine.jar").config("spark.sql.extensions", "my.Extension")
    options = sql_ext.configure(builder)._options
    assert options["spark.jars"].split(",")[0] == "/mine.jar"
    assert options["spark.jars"].endswith(installed_versions({}).shim)
    assert options["spark.sql.extensions"] == "my.Extension,io.usespark.UseSessionExtension"
    assert set(sql_ext.spark_conf()) <= set(options)


def test_configure_gives_queries_the_greater_weight():
    from pyspark.sql import SparkSession

    options = sql_ext.configure(SparkSession.Builder())._options
    assert options["spark.scheduler.mode"] == "FAIR"
    pools = ET.parse(urlparse(options["spark.scheduler.allocation.file"]).path).getroot()
    weights = {pool.get("name"): int(pool.find("weight").text) for pool in pools}
    assert weights["default"] > weights["use"] == 1
    own = SparkSession.Builder().config("spark.scheduler.mode", "FIFO")
    assert "spark.scheduler.allocation.file" not in sql_ext.configure(own)._options
    assert own._options["spark.scheduler.mode"] == "FIFO"
