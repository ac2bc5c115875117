"""Every refusal has a code, in SQL and Python alike, and comes before any data is touched."""

import pytest
from pyspark.errors import AnalysisException, PySparkException
from tables import DeltaTable, another_engine, numbers

import sql_ext
from catalog.history.event_store import optimizations
from procedures.calls.registry import procedures


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Something to do for every strategy, so that only the refusal keeps it from being done."""
    made = shared_table(
        "id BIGINT, x DOUBLE, y INT, s STRING, ok BOOLEAN, raw BINARY, deep STRUCT<a: INT>", index="x,y", cube_size=100
    )
    made.append(numbers(spark, 300).selectExpr("*", "true ok", "X'00' raw", "named_struct('a', 1) deep"))
    return made


@pytest.fixture(scope="module", autouse=True)
def others(spark, shared_table, table, tmp_path_factory):
    """Things that are no Delta table."""
    folder = tmp_path_factory.mktemp("others")
    spark.sql("CREATE TABLE default.a_parquet_table USING parquet AS SELECT 1 a")
    spark.sql(f"CREATE VIEW default.a_view AS SELECT * FROM {table.name}")
    spark.table(table.name).createOrReplaceTempView("a_temp_view")
    spark.range(1).createOrReplaceGlobalTempView("a_global_view")
    (folder / "empty").mkdir()
    spark.range(3).write.parquet(str(folder / "parquet"))
    spark.range(3).write.format("delta").save(str(folder / "delta"))
    yield folder
    spark.sql("DROP TABLE default.a_parquet_table")
    spark.sql("DROP VIEW default.a_view")
    spark.catalog.dropTempView("a_temp_view")
    spark.catalog.dropGlobalTempView("a_global_view")


def refused(spark, procedure, arguments, code, state, named, table=None):
    """Calls in Python and in SQL, and holds that both refuse alike and nothing has changed."""
    before = table.state() if table else None
    with pytest.raises(sql_ext.UseError) as python:
        sql_ext.call(spark, procedure, **arguments).collect()
    assert (python.value.code, python.value.sql_state) == (code, state), python.value
    with pytest.raises(AnalysisException) as sql:
        spark.sql(f"CALL use.{procedure}({', '.join(f'{k} => {literal(v)}' for k, v in arguments.items())})").collect()
    assert (sql.value.getCondition(), sql.value.getSqlState()) == (code, state), sql.value
    for text in (python.value.message, str(sql.value)):
        assert named in text
        assert "\n" not in text.strip()
    if table:
        assert table.state() == before


def literal(value):
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + value + '"'
        case dict():
            return f"map({', '.join(literal(v) for pair in value.items() for v in pair)})"
        case list():
            return f"array({', '.join(map(literal, value))})"
        case None:
            return "NULL"
    return str(value)


@pytest.mark.quick_sample(8)
@pytest.mark.parametrize("procedure", ["optimize", "vacuum"])
@pytest.mark.parametrize(
    ("name", "code", "state"),
    [
        ("default.no_such_table", "USE_TABLE_NOT_FOUND", "42P01"),
        ("no_such_database.t", "USE_TABLE_NOT_FOUND", "42P01"),
        ("no_such_catalog.default.t", "USE_TABLE_NOT_FOUND", "42P01"),
        ("/no/such/path", "USE_TABLE_NOT_FOUND", "42P01"),
        ("delta.`/no/such/path`", "USE_TABLE_NOT_FOUND", "42P01"),
        ("default.a_parquet_table", "USE_NOT_A_DELTA_TABLE", "42809"),
        ("default.a_view", "USE_NOT_A_TABLE", "42809"),
        ("a_temp_view", "USE_NOT_A_TABLE", "42809"),
        ("global_temp.a_global_view", "USE_NOT_A_TABLE", "42809"),
        ("default..t", "USE_INVALID_TABLE_NAME", "42602"),
        ("default.`t", "USE_INVALID_TABLE_NAME", "42602"),
        ("a b", "USE_INVALID_TABLE_NAME", "42602"),
        ("", "USE_INVALID_TABLE_NAME", "42602"),
        ("  ", "USE_INVALID_TABLE_NAME", "42602"),
    ],
)
def test_names_that_are_no_delta_table(spark, procedure, name, code, state):
    refused(spark, procedure, {"table": name}, code, state, name.strip())


@pytest.mark.parametrize("folder", ["empty", "parquet"])
def test_paths_that_are_no_delta_table(spark, others, folder):
    path = str(others / folder)
    with pytest.raises(sql_ext.UseError) as found:
        sql_ext.call(spark, "optimize", table=path)
    assert found.value.code in ("USE_NOT_A_DELTA_TABLE", "USE_TABLE_NOT_FOUND")
    assert path in found.value.message


def test_a_virtual_table_is_no_table_to_optimize(spark, table):
    refused(
        spark, "optimize", {"table": f"{table.name}.optimizations"}, "USE_NOT_A_DELTA_TABLE", "42809", "optimizations"
    )


@pytest.mark.quick_sample(10)
@pytest.mark.parametrize(
    ("given", "code", "state", "named"),
    [
        ({"strategy": "LeveledCompacton"}, "USE_UNKNOWN_STRATEGY", "42704", "Did you mean LeveledCompaction?"),
        ({"options": {"batch_byte": "1"}}, "USE_UNKNOWN_OPTION", "42704", "Did you mean batch_bytes?"),
        ({"bytes_per_iter": -1}, "USE_INVALID_ARGUMENT", "22023", "bytes_per_iter = -1"),
        ({"max_bytes": -5}, "USE_INVALID_ARGUMENT", "22023", "max_bytes = -5"),
        ({"max_iterations": 0}, "USE_INVALID_ARGUMENT", "22023", "max_iterations = 0"),
        ({"max_duration": "1 fortnight"}, "USE_INVALID_ARGUMENT", "22023", "max_duration"),
        ({"revision_id": -1}, "USE_INVALID_ARGUMENT", "22023", "revision_id = -1"),
        ({"revision_id": 7}, "USE_UNKNOWN_REVISION", "42704", "'7'"),
        ({"where": "no_such > 1"}, "USE_UNKNOWN_COLUMN", "42703", "no_such"),
        ({"where": "x >"}, "USE_INVALID_ARGUMENT", "22023", "where"),
        ({"files": ["no_such_file"]}, "USE_UNKNOWN_FILE", "42704", "no_such_file"),
        ({"revision_rewrite": True, "revision_id": 0}, "USE_INVALID_ARGUMENT", "22023", "revision_id = 0"),
        ({"parallelism": 0}, "USE_INVALID_ARGUMENT", "22023", "parallelism"),
        ({"options": {"batch_bytes": "-3"}}, "USE_INVALID_ARGUMENT", "22023", "batch_bytes"),
        (
            {"bytes_per_iter": 5, "options": {"batch_bytes": "6"}},
            "USE_INVALID_ARGUMENT",
            "22023",
            "batch_bytes = 6 is not accepted: at most bytes_per_iter = 5",
        ),
        ({"options": {"from_timestamp": "2023-01-01 Nowhere"}}, "USE_INVALID_ARGUMENT", "22023", "Nowhere"),
        # Spark would cast these in silence, or refuse them in several lines.
        ({"max_iterations": 1.5}, "USE_INVALID_ARGUMENT", "22023", "max_iterations = 1.5 is not accepted: an INT"),
        ({"max_iterations": 2.0}, "USE_INVALID_ARGUMENT", "22023", "max_iterations = 2.0"),
        ({"max_iterations": "2"}, "USE_INVALID_ARGUMENT", "22023", "max_iterations = '2'"),
        ({"max_iterations": True}, "USE_INVALID_ARGUMENT", "22023", "max_iterations = true"),
        ({"max_iterations": 2**31}, "USE_INVALID_ARGUMENT", "22023", f"max_iterations = {2**31}"),
        ({"max_bytes": 2**63}, "USE_INVALID_ARGUMENT", "22023", f"max_bytes = {2**63}"),
        ({"revision_id": 0.5}, "USE_INVALID_ARGUMENT", "22023", "revision_id = 0.5"),
        ({"dry_run": 1}, "USE_INVALID_ARGUMENT", "22023", "dry_run = 1 is not accepted: a BOOLEAN is expected"),
        ({"dry_run": "true"}, "USE_INVALID_ARGUMENT", "22023", "dry_run = 'true'"),
        ({"strategy": 7}, "USE_INVALID_ARGUMENT", "22023", "strategy = 7 is not accepted: a STRING is expected"),
    ],
    ids=str,
)
def test_arguments_of_optimize(spark, table, given, code, state, named):
    refused(spark, "optimize", {"table": table.name, **given}, code, state, named, table)


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        ({"retention_hours": 1.0}, "USE_RETENTION_TOO_SHORT", "force => true"),
        ({"retention_hours": 0.0}, "USE_RETENTION_TOO_SHORT", "168"),
        ({"retention_hours": -1.0}, "USE_INVALID_ARGUMENT", "retention_hours"),
        ({"retention_hours": -1.0, "force": True}, "USE_INVALID_ARGUMENT", "retention_hours"),
        ({"mode": "some"}, "USE_INVALID_ARGUMENT", "mode = 'some'"),
        ({"parallelism": 0}, "USE_INVALID_ARGUMENT", "parallelism"),
        ({"parallelism": 1.5}, "USE_INVALID_ARGUMENT", "parallelism = 1.5"),
        ({"max_files_per_second": 0.0}, "USE_INVALID_ARGUMENT", "max_files_per_second = 0.0 is not accepted"),
        ({"max_files_per_second": -1.0}, "USE_INVALID_ARGUMENT", "max_files_per_second = -1.0 is not accepted"),
        ({"inventory": "i", "mode": "lite"}, "USE_INVALID_ARGUMENT", "an inventory needs mode => 'full'"),
        ({"retention_hours": "200"}, "USE_INVALID_ARGUMENT", "retention_hours = '200' is not accepted: a DOUBLE"),
    ],
    ids=str,
)
def test_arguments_of_vacuum(spark, table, given, code, named):
    refused(spark, "vacuum", {"table": table.name, **given}, code, "22023", named, table)


@pytest.mark.parametrize(
    ("procedure", "missing", "declared_type"),
    [
        (declared.name, parameter.name, parameter.type)
        for declared in procedures().values()
        for parameter in declared.parameters
        if parameter.required
    ],
)
def test_null_for_what_is_required(spark, procedure, missing, declared_type):
    """Whatever else is given, the refusal speaks of NULL, and of no default there is."""
    required = [p for p in procedures()[procedure].parameters if p.required]
    given = {p.name: "x" if p.type == "STRING" else 1 for p in required}
    text = f"{missing} = NULL is not accepted: a {declared_type} is required"
    refused(spark, procedure, {**given, missing: None}, "USE_INVALID_ARGUMENT", "22023", text)


def test_null_by_position(spark):
    with pytest.raises(AnalysisException, match=r"table = NULL is not accepted") as found:
        spark.sql("CALL use.optimize(NULL)")
    assert found.value.getCondition() == "USE_INVALID_ARGUMENT"


@pytest.mark.slow
def test_values_by_position_and_of_narrower_types(spark, table):
    """What fits the declared type is taken, however wide it is written; NULL stands for the default."""
    before = table.state()
    for text in (
        f"CALL use.optimize('{table.name}', NULL, 0, 1000L, 1Y, max_bytes => 5S, dry_run => true)",
        f"CALL use.optimize(TABLE => '{table.name}', Max_Iterations => 1 + 1, options => NULL, dry_run => true)",
        f"CALL use.optimize(table => '{table.name}', options => map('batch_bytes', 1000), dry_run => true)",
        f"CALL use.vacuum('{table.name}', 200, dry_run => true)",
        f"CALL use.vacuum('{table.name}', 200.5, dry_run => true)",
        f"CALL use.vacuum('{table.name}', double('200'), dry_run => true)",
    ):
        spark.sql(text).collect()
    assert table.state() == before


@pytest.mark.parametrize("text", ["double('nan')", "double('inf')", "float('nan')", "- double('inf')"])
def test_numbers_that_are_none(spark, table, text):
    for call in (f"vacuum('{table.name}', {text})", f"quantiles('{table.name}', 'x', relative_error => {text})"):
        with pytest.raises(AnalysisException) as found:
            spark.sql(f"CALL use.{call}")
        assert found.value.getCondition() == "USE_INVALID_ARGUMENT", call
    with pytest.raises(AnalysisException, match=r"n = (nan|-?inf) is not accepted"):
        spark.sql(f"CALL use.quantiles('{table.name}', 'x', {text})")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_retention_that_is_no_number(spark, table, value):
    with pytest.raises(sql_ext.UseError) as found:
        sql_ext.call(spark, "vacuum", table=table.name, retention_hours=value, force=True)
    assert found.value.code == "USE_INVALID_ARGUMENT"


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    ("columns", "code", "state", "named"),
    [
        ("nothing", "USE_UNKNOWN_COLUMN", "42703", "'nothing'"),
        ("X1", "USE_UNKNOWN_COLUMN", "42703", "Did you mean x?"),
        ("ok:quantiles", "USE_UNINDEXABLE_TYPE", "42K09", "boolean"),
        ("raw:linear", "USE_UNINDEXABLE_TYPE", "42K09", "binary"),
        ("deep", "USE_UNINDEXABLE_TYPE", "42K09", "struct"),
        ("x,x", "USE_INVALID_ARGUMENT", "22023", "once"),
        ("x:quantile", "USE_UNKNOWN_TRANSFORMATION", "42704", "Did you mean quantiles?"),
    ],
)
def test_index_columns(spark, new_table, columns, code, state, named):
    with another_engine():
        made = new_table("x BIGINT, ok BOOLEAN, raw BINARY, deep STRUCT<a: INT>", index=columns)
    spark.sql(f"INSERT INTO {made.name} VALUES (1, true, X'00', named_struct('a', 1))")
    refused(spark, "optimize", {"table": made.name}, code, state, named, made)
    refused(spark, "optimize", {"table": made.name, "dry_run": True}, code, state, named, made)


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("strategy", [None, "UnindexedFiles", "LeveledCompaction"])
def test_no_index_columns(spark, new_table, strategy):
    made = new_table("a BIGINT")
    spark.sql(f"INSERT INTO {made.name} VALUES (1)")
    refused(
        spark,
        "optimize",
        {"table": made.name, "strategy": strategy},
        "USE_NO_INDEX_COLUMNS",
        "55000",
        "use.index.columns",
        made,
    )


@pytest.mark.parametrize(("key", "value"), [("use.index.cubeSize", "-1"), ("use.index.targetFileBytes", "big")])
def test_malformed_properties(spark, new_table, key, value):
    with another_engine():
        made = new_table("a BIGINT", index="a", properties={key: value})
    spark.sql(f"INSERT INTO {made.name} VALUES (1)")
    refused(spark, "optimize", {"table": made.name}, "USE_INVALID_ARGUMENT", "22023", key, made)


@pytest.mark.slow
def test_an_unreadable_index(spark, new_table):
    made = new_table("a BIGINT", index="a")
    made.append(spark.range(5).selectExpr("id a")).index()
    with another_engine():
        made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('qbeast.revision.1'='{{broken')")
    with pytest.raises(AnalysisException) as found:
        spark.sql(f"CALL use.optimize('{made.name}')")
    assert found.value.getCondition() == "USE_INDEX_FORMAT"
    with pytest.raises(sql_ext.UseError) as typed:
        made.optimize()
    assert typed.value.code == "USE_INDEX_FORMAT"
    # Reading never needs the index.
    assert made.data.where("a > 2").count() == 2
    assert made.data.sample(1.0).count() == 5


def test_wrong_types_and_missing_arguments_in_python(spark, table):
    before = table.state()
    for arguments in (
        {},
        {"table": None},
        {"table": 5},
        {"table": table.name, "bytes_per_iter": "many"},
        {"table": table.name, "bytes_per_iter": True},
        {"table": table.name, "max_iterations": 1.5},
        {"table": table.name, "dry_run": "yes"},
        {"table": table.name, "options": [("batch_bytes", "1")]},
        {"table": table.name, "options": {"batch_bytes": 1}},
    ):
        with pytest.raises(sql_ext.UseError) as found:
            sql_ext.call(spark, "optimize", **arguments)
        assert found.value.code in ("USE_INVALID_ARGUMENT", "USE_INVALID_TABLE_NAME"), arguments
    with pytest.raises(sql_ext.UseError) as found:
        sql_ext.call(spark, "optimize", table=table.name, dryrun=True)
    assert found.value.code == "USE_UNKNOWN_PARAMETER"
    assert table.state() == before


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "NULL",
        "'{t}', bytes_per_iter => 'many'",
        "'{t}', dryrun => true",
        "'{t}', table => '{t}'",
        "table => '{t}', true",
    ],
)
def test_wrong_types_and_missing_arguments_in_sql(spark, table, arguments):
    before = table.state()
    with pytest.raises(PySparkException) as found:
        spark.sql(f"CALL use.optimize({arguments.format(t=table.name)})").collect()
    # What does not fit the declared types is refused by Spark, before the call.
    assert found.value.getCondition()
    assert table.state() == before


def test_an_unknown_procedure(spark):
    with pytest.raises(AnalysisException, match=r"Did you mean optimize\?") as found:
        spark.sql("CALL use.optimise('t')")
    assert (found.value.getCondition(), found.value.getSqlState()) == ("USE_UNKNOWN_PROCEDURE", "42883")
    with pytest.raises(sql_ext.UseError) as typed:
        sql_ext.call(spark, "optimise", table="t")
    assert typed.value.code == "USE_UNKNOWN_PROCEDURE"
    with pytest.raises(AnalysisException) as found:
        spark.sql("CALL use.some.optimize('t')")
    assert found.value.getCondition() == "USE_UNKNOWN_PROCEDURE"


# --------------------------------------------------------------------------------------- denied writes


@pytest.fixture
def denying(spark, tmp_path):
    """A table under ``deny://``, and the switch of that file system."""
    switch = spark._jvm.io.usespark.testing.DenyingFileSystem
    path = f"deny://{tmp_path}/t"
    spark.range(50).selectExpr("id a").coalesce(1).write.format("delta").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('use.index.columns'='a')")
    yield DeltaTable(spark, f"delta.`{path}`"), switch
    switch.deny(None)
    switch.failAfterRename(None)


@pytest.mark.slow
@pytest.mark.parametrize(("procedure", "more"), [("optimize", {}), ("vacuum", {"retention_hours": 0.0, "force": True})])
def test_a_file_system_that_denies_writes(spark, denying, procedure, more):
    table, switch = denying
    table.sql("DELETE FROM {t} WHERE a < 5")
    switch.deny("/t/")
    path = table.name.removeprefix("delta.").strip("`")
    refused(spark, procedure, {"table": path, **more}, "USE_WRITE_DENIED", "42501", "Permission denied", table)
    switch.deny(None)
    sql_ext.call(spark, procedure, table=path, **more)
    assert table.data.count() == 45
    assert procedure != "vacuum" or table.on_disk() == table.paths


@pytest.mark.slow
def test_dry_runs_need_no_write(spark, denying):
    table, switch = denying
    switch.deny("/t/")
    assert table.optimize(dry_run=True)[0].state == "planned"
    assert sql_ext.call(spark, "vacuum", table=table.name, dry_run=True, retention_hours=0.0).count() == 0


@pytest.mark.slow
def test_a_commit_that_cannot_be_written_keeps_every_file(spark, denying):
    """Nothing tells whether the log entry may still appear, so nothing is deleted."""
    table, switch = denying
    files = table.on_disk()
    switch.deny("/t/_delta_log")
    with pytest.raises(sql_ext.UseError) as denied:
        table.optimize()
    # The first indexing makes a revision first: nothing was written when that failed.
    assert (denied.value.code, table.on_disk()) == ("USE_FILE_SYSTEM", files)
    switch.deny(None)
    table.optimize()
    table.sql("INSERT INTO {t} SELECT * FROM {t} LIMIT 10")
    files = table.on_disk()
    switch.deny("/t/_delta_log")
    with pytest.raises(sql_ext.UseError) as unknown:
        table.optimize()
    switch.deny(None)
    assert unknown.value.code == "USE_COMMIT_UNKNOWN"
    (failed,) = optimizations(table.managed).where("error_code = 'USE_COMMIT_UNKNOWN'").collect()
    assert failed.state == "failed"
    # By it, the commit is known should it appear.
    assert failed.write_id in unknown.value.message
    assert table.on_disk() > files
    assert table.data.count() == 60
    assert table.optimize()[0].state == "committed"


def test_a_commit_that_happened_although_it_failed(spark, denying):
    """The answer to the write of the log entry was lost: the write id tells that it is there."""
    table, switch = denying
    switch.failAfterRename("/t/_delta_log/")
    report = table.optimize()
    switch.failAfterRename(None)
    assert report[0].state == "committed"
    assert report[0].version == table.version
    assert table.data.count() == 50
    assert not table.unindexed
