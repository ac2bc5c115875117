"""Whatever is wrong with a table or an argument: one line, one code, and no word of Java's."""

import shutil
import socket
import time

import pytest
from click.testing import CliRunner
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import sql_ext
from catalog.state.automation import FAILED, SCHEDULED, Automation
from catalog.table.managed_table import ManagedTable
from procedures.calls.registry import procedures
from procedures.process.application import application
from sql_ext.commands.command_line import cli
from sql_ext.commands.exits import ExitCode

MORE = {
    "index": {"columns": "id"},
    "quantiles": {"column": "id"},
    "protect": {"version": 0, "name": "n"},
    "unprotect": {"name": "n"},
}


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """Folders with logs that are damaged in several ways, and data of other formats."""
    folder = tmp_path_factory.mktemp("raw")
    logs = {"garbage": "garbage{", "no_protocol": '{"commitInfo": {}}\n'}
    for name, text in logs.items():
        (folder / name / "_delta_log").mkdir(parents=True)
        (folder / name / "_delta_log" / f"{0:020d}.json").write_text(text)
    for _ in range(3):
        spark.range(1).write.mode("append").format("delta").save(f"{folder}/gap")
    (folder / "gap/_delta_log" / f"{1:020d}.json").unlink()
    (folder / "gap/_delta_log" / f".{1:020d}.json.crc").unlink(missing_ok=True)
    (folder / "empty_log/_delta_log").mkdir(parents=True)
    (folder / "a_file").write_text("x")
    spark.range(1).write.parquet(f"{folder}/parquet")
    spark.range(1).write.csv(f"{folder}/csv")
    spark.range(3).selectExpr("id", "'a' AS s", "DATE'2020-01-01' AS d").write.format("delta").save(f"{folder}/good")
    spark.sql(f"ALTER TABLE delta.`{folder}/good` SET TBLPROPERTIES ('use.index.columns' = 'id')")
    spark.sql(f"CREATE TABLE default.raw_good USING delta LOCATION '{folder}/good'")
    spark.range(1).write.format("delta").save(f"{folder}/gone")
    spark.sql(f"CREATE TABLE default.raw_gone USING delta LOCATION '{folder}/gone'")
    shutil.rmtree(folder / "gone")
    yield folder
    spark.sql("DROP TABLE default.raw_good")
    spark.sql("DROP TABLE default.raw_gone")


def check(text: str) -> None:
    """Holds that a message is for people."""
    assert "\n" not in text
    for word in ("(null)", "Exception", "java.", "org.apache.spark.", "at or near 'at'", "Py4J", "<class", "None"):
        assert word not in text, text
    assert text.rstrip().count("SQLSTATE") <= 1, text


def refused(spark, name, procedure="optimize", /, **more):
    """The code of a refusal, which is the same from Python and SQL, and whose text is one line in both."""
    with pytest.raises(sql_ext.UseError) as python:
        sql_ext.call(spark, procedure, table=name, **more)
    check(str(python.value))
    given = ", ".join(f"{key} => {value!r}" for key, value in more.items())
    with pytest.raises(AnalysisException) as sql:
        spark.sql(f"CALL use.{procedure}({name!r}{f', {given}' if given else ''})")
    check(str(sql.value))
    assert sql.value.getCondition() == python.value.code
    assert sql.value.getSqlState() == python.value.sql_state
    return python.value


@pytest.mark.quick_sample(8)
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("s3a://bucket/t", "USE_FILE_SYSTEM", "spark.jars.packages"),
        ("delta.`s3a://bucket/t`", "USE_FILE_SYSTEM", "spark.jars.packages"),
        ("s3://bucket/t", "USE_FILE_SYSTEM", 'scheme "s3"'),
        ("xyz:/t", "USE_FILE_SYSTEM", 'scheme "xyz"'),
        ("http://127.0.0.1:1/t", "USE_FILE_SYSTEM", "no folders"),
        ("hdfs:///t", "USE_FILE_SYSTEM", "hdfs://host:port/path"),
        ("hdfs://127.0.0.1:1/a/b/t", "USE_FILE_SYSTEM", "does not answer"),
        ("hdfs://nohost.invalid/t", "USE_FILE_SYSTEM", "there is no host nohost.invalid"),
        ("file://elsewhere/t", "USE_FILE_SYSTEM", "leave the host out"),
        ("//tmp/t", "USE_FILE_SYSTEM", "begin the path with one slash"),
        ("parquet.`s3a://bucket/t`", "USE_FILE_SYSTEM", "spark.jars.packages"),
        ("{f}/garbage", "USE_TABLE_UNREADABLE", "garbage/_delta_log/00000000000000000000.json"),
        ("{f}/no_protocol", "USE_TABLE_UNREADABLE", "protocol"),
        ("{f}/gap", "USE_TABLE_UNREADABLE", "not contiguous"),
        ("{f}/empty_log", "USE_NOT_A_DELTA_TABLE", "no Delta log"),
        ("{f}/a_file", "USE_NOT_A_DELTA_TABLE", "no Delta log"),
        ("default.raw_gone", "USE_TABLE_NOT_FOUND", "folder"),
        ("parquet.`{f}/parquet`", "USE_NOT_A_DELTA_TABLE", "(parquet)"),
        ("csv.`{f}/csv`", "USE_NOT_A_DELTA_TABLE", "(csv)"),
        ("parquet.`{f}/good`", "USE_NOT_A_DELTA_TABLE", "use the table itself, delta.`{f}/good`"),
        ("parquet.`{f}/nothing`", "USE_TABLE_NOT_FOUND", "no such folder"),
        ("raw_good.cubes", "USE_NOT_A_DELTA_TABLE", "use the table itself, raw_good."),
        ("delta.`{f}/good`.cubes", "USE_NOT_A_DELTA_TABLE", "use the table itself, delta.`{f}/good`."),
        ("use_catalog.spark_catalog.default.raw_good", "USE_NOT_A_DELTA_TABLE", "spark_catalog.default.raw_good."),
        ("use_catalog.system_lake_tables.optimizations", "USE_NOT_A_DELTA_TABLE", "virtual table"),
        ("use.optimize", "USE_TABLE_NOT_FOUND", "not a catalog of tables"),
        ("a.b.c.d", "USE_TABLE_NOT_FOUND", "single-part namespace"),
        ("täbel", "USE_INVALID_TABLE_NAME", "back quoted"),
        ("a\nb", "USE_INVALID_TABLE_NAME", "'a b'"),
        ("/a\nb", "USE_INVALID_TABLE_NAME", "'/a b'"),
        ("``", "USE_INVALID_TABLE_NAME", "empty"),
        ("delta.``", "USE_INVALID_TABLE_NAME", "empty"),
        ("relative/path", "USE_INVALID_TABLE_NAME", "absolute path"),
        ("delta.`relative/path`", "USE_TABLE_NOT_FOUND", "give a table name or a path"),
        ("raw_good;", "USE_INVALID_TABLE_NAME", "';'"),
    ],
)
def test_names_and_places(spark, folder, name, code, said):
    name, said = name.format(f=folder), said.format(f=folder)
    error = refused(spark, name)
    assert error.code == code
    assert said in error.message


@pytest.mark.slow
@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("where", ["garbage", "gap", "no_protocol"])
def test_every_procedure_on_a_damaged_log(spark, folder, where):
    # A protection is a file beside the log, and can be ended whatever the log is like. `recommend` needs queries first.
    others = {"cancel", "recommend", "status", "suspend", "unprotect"}
    of_a_table = {name for name, one in procedures().items() if any(p.name == "table" for p in one.parameters)}
    for name in sorted(of_a_table - others):
        error = refused(spark, f"{folder}/{where}", name, **MORE.get(name, {}))
        assert error.code == "USE_TABLE_UNREADABLE", name


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("s3a://b/t", "USE_FILE_SYSTEM"),
        ("http://127.0.0.1:1/t", "USE_FILE_SYSTEM"),
        ("hdfs://127.0.0.1:1/t", "USE_FILE_SYSTEM"),
        ("{f}/garbage", "USE_TABLE_UNREADABLE"),
        ("{f}/gap", "USE_TABLE_UNREADABLE"),
    ],
)
def test_virtual_tables_and_triggers(spark, folder, place, code):
    table = f"delta.`{place.format(f=folder)}`"
    for statement in (
        f"SELECT * FROM {table}.cubes",
        f"SELECT * FROM use_catalog.spark_catalog.{table}.optimizations",
        f"ALTER TABLE use_catalog.spark_catalog.{table} SET TBLPROPERTIES ('use.optimization.type' = 'UnindexedFiles')",
    ):
        with pytest.raises(AnalysisException) as found:
            spark.sql(statement).collect()
        assert found.value.getCondition() == code, statement
        check(str(found.value))


@pytest.mark.slow
def test_a_server_that_never_answers_is_left_soon(spark):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(sql_ext.UseError) as found:
            ManagedTable.find(spark, f"hdfs://127.0.0.1:{silent.getsockname()[1]}/a/b/c/t")
        assert time.monotonic() - begun < 40  # Hadoop alone waits for two minutes, for each folder above too
    assert found.value.code == "USE_FILE_SYSTEM"
    check(str(found.value))


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("cast('x' AS INT) = id", "'x'"),
        ("id > 0 AND (d = CAST('zz' AS DATE) OR id < 5)", "'zz'"),
        ("id = CAST('9999999999999' AS INT)", "9999999999999"),
        ("id", "boolean"),
        ("id =", "where = 'id ='"),
        ("id >\n\n", "where = 'id > '"),
        ("d = TIMESTAMP 'zzz'", "'zzz'"),
        ("no_such_function(id) = 1", "no_such_function"),
        ("id <=> INTERVAL 1 DAY", "INTERVAL"),
        ("id = :p", "p"),
    ],
)
def test_where(spark, folder, where, said):
    error = refused(spark, f"{folder}/good", where=where)
    assert error.code == "USE_INVALID_ARGUMENT"
    assert said in error.message


@pytest.mark.slow
def test_casts_that_are_accepted(spark, folder):
    for where in ("id = cast('1' AS INT)", "id = try_cast('x' AS INT)", "d >= CAST('2020-01-01' AS DATE)"):
        (row,) = sql_ext.call(spark, "optimize", table=f"{folder}/good", where=where, dry_run=True).collect()
        assert row.state in ("planned", "skipped")


@pytest.mark.parametrize("name", ["s3a://b/t", "parquet.`s3a://b/t`", "hdfs://127.0.0.1:1/t", "{f}/garbage", "{f}/csv"])
def test_converting_what_cannot_be_read(spark, folder, name):
    with pytest.raises(sql_ext.UseError) as found:
        sql_ext.call(spark, "index", table=name.format(f=folder), columns="id", convert=True)
    assert found.value.code in ("USE_FILE_SYSTEM", "USE_TABLE_UNREADABLE", "USE_NOT_A_DELTA_TABLE")
    check(str(found.value))


@pytest.mark.parametrize(
    ("place", "code"),
    [("s3a://b/t", "USE_FILE_SYSTEM"), ("{f}/garbage", "USE_TABLE_UNREADABLE"), ("{f}/good@v0", "USE_TIME_TRAVEL")],
)
def test_commands(spark, folder, place, code):
    place = place.format(f=folder)
    for command in (
        ["inspect", place],
        ["inspect", place, "cubes"],
        ["optimize", "--table", place],
        ["check", "--table", place],
    ):
        done = CliRunner().invoke(cli, command)
        (line,) = done.stderr.splitlines()
        assert (done.exit_code, line.startswith(f"use-spark: {code}: ")) == (ExitCode.FAILED, True), line
        check(line)


def test_a_sick_table_does_not_hide_the_others(spark, folder):
    spark.sql(f"CREATE TABLE default.raw_sick USING delta LOCATION '{folder}/sick' AS SELECT 1 AS id")
    (folder / f"sick/_delta_log/{0:020d}.json").write_text("garbage{")
    for crc in (folder / "sick/_delta_log").glob("*.crc"):
        crc.unlink()
    (folder / f"sick/_delta_log/.{0:020d}.json.crc").unlink(missing_ok=True)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    away = "hdfs://127.0.0.1:1/t"
    application().automations.put(Automation(f"spark_catalog.delta.`{away}`", away, SCHEDULED))
    try:
        (known,) = sql_ext.call(spark, "status", details=True).where(F.col("location") == away).collect()
        assert known.state == FAILED
        assert known.last_error.startswith("USE_FILE_SYSTEM: ")
        (out_of_reach,) = sql_ext.metastore_summary(spark).where(F.col("location") == away).collect()
        assert out_of_reach.last_error.startswith("USE_FILE_SYSTEM: ")
        rows = {row.name: row for row in sql_ext.metastore_summary(spark).where("name LIKE 'raw\\_%'").collect()}
        assert rows["raw_good"].last_error is None
        assert rows["raw_good"].last_version is not None
        assert rows["raw_sick"].last_error.startswith("USE_TABLE_UNREADABLE: ")
        assert rows["raw_gone"].last_error.startswith("USE_TABLE_NOT_FOUND: ")
        check(rows["raw_sick"].last_error)
    finally:
        application().automations.remove(away)
        spark.sql("DROP TABLE IF EXISTS default.raw_sick")
