"""A shared server whose catalog refuses tables to a user: calls on them fail, and nothing shows that they exist."""

import json

import pytest
from pyspark.errors import AnalysisException
from tables import NUMBERS, DeltaTable, numbers

import sql_ext
from catalog.errors import UseError
from catalog.jvm.log_probe import qualified
from catalog.jvm.metastore import is_restricting, is_shown
from catalog.jvm.table_handle import check_rights
from catalog.state.automation import SCHEDULED, Automation
from catalog.table.managed_table import ManagedTable
from procedures.calls.registry import built_in_procedures, procedures
from procedures.declare.runs import Run
from procedures.process.application import application

CATALOG = "io.usespark.testing.catalogs.RefusingCatalog"
FORBIDDEN = ("refused_orders", "hidden_orders")
# What a message may not say of the table.
SECRETS = ("x_secret", "_delta_log")
SYSTEM = ("metastore_summary", "optimizations", "ingestion", "consumption", "fleet")
ARGUMENTS = {
    "plan": "0123456789ab", "name": "n", "run_id": "r", "query": "SELECT 1", "queries": ["SELECT * FROM t"],
    "columns": "id",
    "column": "id",
}  # fmt: skip
AUTOMATIC = {"use.optimization.type": "UnindexedFiles", "use.insights.consumption.enabled": "true"}


@pytest.fixture
def forbidden(spark, new_table):
    """Tables of the metastore with files and a state, which the user's catalog refuses or hides."""
    tables = []
    for name in FORBIDDEN:
        table = new_table(NUMBERS, index="x,y", cube_size=200, properties=AUTOMATIC).append(numbers(spark, 50))
        spark.sql(f"ALTER TABLE {table.name} RENAME TO default.{name}")
        tables.append(f"default.{name}")
    yield tables
    for name in tables:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def user(spark):
    """A session of a user with fewer rights."""
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    return session


def _version(spark, name):
    return spark.sql(f"DESCRIBE HISTORY {name}").agg({"version": "max"}).first()[0]


@pytest.mark.parametrize("number", [0, 1], ids=FORBIDDEN)
def test_no_call_on_a_forbidden_table_does_or_tells_anything(spark, user, forbidden, number):
    name = forbidden[number]
    before, location = _version(spark, name), spark.sql(f"DESCRIBE DETAIL {name}").first().location
    for procedure in procedures().values():
        required = {p.name: ARGUMENTS.get(p.name, name) for p in procedure.parameters if p.required}
        names = {p.name for p in procedure.parameters}
        if "table" not in names:
            continue
        with pytest.raises((UseError, AnalysisException)) as refused:
            sql_ext.call(user, procedure.name, **{**required, "table": name}).collect()
        text = str(refused.value)
        assert "\n\tat " not in text, procedure.name
        assert location.removeprefix("file:") not in text, procedure.name
        assert not any(secret in text for secret in SECRETS), (procedure.name, text)
    for kind in ("optimizations", "revisions", "cubes", "ingestion"):
        with pytest.raises(Exception, match=r"no rights|cannot be found|was not found|not found"):
            user.sql(f"SELECT * FROM {name}.{kind}").collect()
    assert _version(spark, name) == before


@pytest.mark.slow
def test_lists_of_all_tables_leave_forbidden_ones_out(spark, user, forbidden, new_table, tmp_path):
    seen = new_table(NUMBERS, index="x,y", cube_size=200, properties=AUTOMATIC).append(numbers(spark, 50))
    shown = {}
    for kind in SYSTEM:
        shown[kind] = user.sql(f"SELECT * FROM use_catalog.system_lake_tables.{kind}").collect()
    shown["names"] = user.sql("SELECT name, location FROM use_catalog.system_lake_tables.metastore_summary").collect()
    shown["status"] = sql_ext.call(user, "status").collect()
    shown["fleet"] = sql_ext.call(user, "fleet", dry_run=True).collect()
    assert not (seen.path / "_use" / "fleet.json").exists()
    report = tmp_path / "report.html"
    sql_ext.call(user, "report", out=str(report)).collect()
    shown["report"] = report.read_text(encoding="utf-8")
    text = json.dumps(shown, default=str)
    assert seen.name.removeprefix("default.") in text
    for name in forbidden:
        location = spark.sql(f"DESCRIBE DETAIL {name}").first().location
        assert name.removeprefix("default.") not in text
        assert location.rstrip("/").rpartition("/")[2] not in text


def test_tables_of_the_service_are_hidden_too(spark, user, forbidden):
    found = ManagedTable.find(spark, forbidden[0])
    place = qualified(spark, found.location)
    application().automations.put(Automation(found.name, place, SCHEDULED))
    try:
        assert forbidden[0] in str(sql_ext.call(spark, "status").collect())
        for rows in (
            sql_ext.call(user, "status").collect(),
            user.sql("SELECT * FROM use_catalog.system_lake_tables.metastore_summary").collect(),
        ):
            assert "refused_orders" not in str(rows)
    finally:
        application().automations.remove(place)


# Calls that change the table, or what is stored below it; ids are made by the owner before.
WRITING = {
    "optimize": [{}, {"plan": "{plan}"}],
    "compact": [{"primary_key": ["s"], "order_by": "id"}],
    "index": [{"columns": "x"}],
    "drop_index": [{}],
    "quantiles": [{"column": "x", "store": True}],
    "check": [{"repair": True}],
    "plan": [{"store": True}],
    "protect": [{"name": "n", "version": 0}],
    "unprotect": [{"name": "kept"}],
    "suspend": [{}],
    "resume": [{}],
    "vacuum": [{}],
    "purge": [{}],
    "consolidate_log": [{}],
    "cancel": [{"id": "{run}"}],
}
READING = {
    "help", "status", "health", "recommend", "report",
    "clustering_information", "explain_skipping", "approximate",
}  # fmt: skip
# It works on the tables that it lists, and shows what it is denied in their rows.
LISTING = {"fleet"}


def test_every_procedure_is_known_to_write_or_not():
    assert {procedure.name for procedure in built_in_procedures()} == {*WRITING, *READING, *LISTING}


@pytest.fixture
def readable(spark, new_table):
    """A table that the user may read, with work for every call."""
    unrecorded = {"use.optimization.type": "UnindexedFiles", "use.optimization.quietPeriod": "0"}
    table = new_table(NUMBERS, index="x,y", cube_size=200, properties=unrecorded)
    for number in range(3):
        # The column s has the same 50 values in each file.
        table.append(numbers(spark, 50, start=97 * number))
    spark.sql(f"ALTER TABLE {table.name} RENAME TO default.readable_orders")
    yield DeltaTable(spark, "default.readable_orders")
    spark.sql("DROP TABLE IF EXISTS default.readable_orders")


def _contents(table):
    return {str(file): file.read_bytes() for file in table.path.rglob("*") if file.is_file()}


def _ids(spark, table):
    rows = sql_ext.call(spark, "plan", table=table.name, store=True).collect()
    sql_ext.call(spark, "protect", table=table.name, name="kept", version=1)
    return {"plan": rows[0].plan_id}


@pytest.fixture
def run(spark, readable):
    """A run of this process on the table."""
    run = Run.of(readable.managed, "call", {}, application().clock)
    application().runs.begin(run)
    yield run
    application().runs.end(run)


def test_a_table_that_may_only_be_read_is_not_changed_by_calls(spark, user, readable, run):
    assert sql_ext.call(user, "health", table=readable.name).collect()
    ids = {**_ids(spark, readable), "run": run.run_id}
    before = _contents(readable)
    for procedure, calls in WRITING.items():
        for arguments in calls:
            given = {key: value.format(**ids) if isinstance(value, str) else value for key, value in arguments.items()}
            with pytest.raises(UseError, match="no rights") as refused:
                sql_ext.call(user, procedure, table=readable.name, **given).collect()
            assert refused.value.code == "USE_WRITE_DENIED", procedure
    with pytest.raises(UseError, match="no rights"):
        sql_ext.call(user, "cancel", id=run.run_id)
    with pytest.raises(AnalysisException, match="no rights"):
        user.sql(
            f"ALTER TABLE use_catalog.spark_catalog.{readable.name} SET TBLPROPERTIES "
            "('use.optimization.type' = 'UnindexedFiles')"
        )
    (row,) = sql_ext.call(user, "consolidate_log", tables=[readable.name], modes=["commits"]).collect()
    assert (row.state, row.message.partition(":")[0]) == ("failed", "USE_WRITE_DENIED")
    assert run.stop_reason is None
    assert _contents(readable) == before


def test_a_turn_of_a_table_that_may_only_be_read_changes_nothing(spark, user, readable):
    spark.sql(f"ALTER TABLE {readable.name} SET TBLPROPERTIES ('use.insights.consumption.enabled' = 'true')")
    before = _contents(readable)
    rows = {row.table: row for row in sql_ext.call(user, "fleet").collect()}
    row = rows[readable.managed.name]
    assert (row.state, row.reason.partition(":")[0]) == ("failed", "USE_WRITE_DENIED")
    assert _contents(readable) == before


def test_a_parquet_table_is_not_converted_without_the_right_to_write(spark, user):
    for name in ("readable_files", "refused_files"):
        spark.range(3).write.format("parquet").saveAsTable(f"default.{name}")
        try:
            with pytest.raises(UseError, match="no rights"):
                sql_ext.call(user, "index", table=f"default.{name}", columns="id", convert=True)
            details = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE EXTENDED default.{name}").collect()}
            assert details["Provider"] == "parquet"
        finally:
            spark.sql(f"DROP TABLE default.{name}")


def test_runs_on_forbidden_tables_are_neither_shown_nor_stopped(spark, user, forbidden):
    for name in forbidden:
        run = Run.of(ManagedTable.find(spark, name), "call", {}, application().clock)
        application().runs.begin(run)
        try:
            assert run.run_id in str(sql_ext.call(spark, "status").collect())
            assert run.run_id not in str(sql_ext.call(user, "status").collect())
            with pytest.raises(UseError) as refused:
                sql_ext.call(user, "cancel", id=run.run_id)
            assert refused.value.code == "USE_UNKNOWN_RUN"
            assert name not in str(refused.value)
        finally:
            application().runs.end(run)


def test_a_damaged_table_that_may_be_seen_is_still_listed(spark, user, new_table):
    table = new_table(NUMBERS, index="x,y", properties=AUTOMATIC).append(numbers(spark, 5))
    place = qualified(spark, table.managed.location)
    application().automations.put(Automation(table.managed.name, place, SCHEDULED))
    (table.path / "_delta_log" / f"{1:020}.json").write_text("{", encoding="utf-8")
    try:
        assert table.name in str(sql_ext.call(user, "status").collect())
    finally:
        application().automations.remove(place)


@pytest.mark.slow
def test_files_of_clones_that_the_user_may_not_see_are_kept(spark, user, new_table):
    table = new_table(NUMBERS).append(numbers(spark, 20))
    spark.sql(f"CREATE TABLE default.hidden_clone SHALLOW CLONE {table.name}")
    try:
        rows = spark.table("default.hidden_clone").count()
        spark.sql(f"DELETE FROM {table.name}")
        sql_ext.call(user, "vacuum", table=table.name, retention_hours=0.0, force=True).collect()
        assert spark.table("default.hidden_clone").count() == rows
        assert "hidden_clone" not in str(
            sql_ext.call(user, "vacuum", table=table.name, retention_hours=0.0, force=True).collect()
        )
    finally:
        spark.sql("DROP TABLE default.hidden_clone")


def test_names_of_virtual_tables_as_names_of_databases(spark, user):
    """The table of a virtual table may itself be called like one."""
    for database in ("cubes", "revisions"):
        spark.sql(f"CREATE DATABASE {database}")
    try:
        user.sql("USE revisions")
        for name in ("cubes.revisions", "cubes.cubes", "revisions.cubes", "revisions.revisions.cubes"):
            with pytest.raises(AnalysisException) as missing:
                user.sql(f"SELECT * FROM {name}")
            assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND", name
        user.sql("CREATE TABLE revisions.cubes (a INT) USING delta")
        assert user.sql("SELECT * FROM revisions.cubes.optimizations").collect() == []
    finally:
        user.sql("USE default")
        for database in ("cubes", "revisions"):
            spark.sql(f"DROP DATABASE {database} CASCADE")


def test_catalogs_of_use_and_delta_are_not_asked_for_rights(spark, user):
    of_delta = spark.newSession()
    of_delta.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    assert [is_restricting(session) for session in (spark, of_delta, user)] == [False, False, True]
    # No table of this name is looked up.
    for session in (spark, of_delta):
        assert is_shown(session, "spark_catalog.default.no_such_table")
        check_rights(session, "spark_catalog.default.no_such_table")
    assert not is_shown(user, "spark_catalog.default.no_such_table")
