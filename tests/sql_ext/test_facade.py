"""``sql_ext.table``: names and answers as in SQL, refusals typed, and nothing that goes stale."""

import copy
import inspect
from dataclasses import fields
from datetime import timezone
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pyspark.sql.types import StructType
from tables import NUMBERS, numbers

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.jvm.shim_bridge import ShimBridge
from catalog.state.lease import Acquired, acquire
from catalog.system_tables import SYSTEM_TABLES
from catalog.virtual_tables import VIRTUAL_TABLES
from procedures.calls.registry import procedures
from procedures.declare.runs import CALL, Run
from procedures.declare.signature import DETAILS
from procedures.process.application import application
from sql_ext.facade.rows import typed_rows
from sql_ext.remote_calls import call_statement

# ------------------------------------------------------------------------------------------- the same as declared

# Procedure, and the parameters that a method does not have because it gives them itself.
INSPECT = {
    "plan": ("optimize", {"dry_run"}),
    "consolidation_plan": ("plan", {"store"}),
    "clustering_information": ("clustering_information", set()),
    "recommend": ("recommend", set()),
    "check": ("check", {"repair"}),
    "health": ("health", set()),
    # A file is written by the object that is returned.
    "report": ("report", {"out"}),
    "quantiles": ("quantiles", {"store"}),
    "status": ("status", set()),
}
MAINTENANCE = {
    # Parquet that is to be converted is no Delta table yet, and so none that a facade can stand for.
    "index": ("index", {"convert"}),
    "drop_index": ("drop_index", set()),
    "compact": ("compact", set()),
    "optimize": ("optimize", set()),
    "vacuum": ("vacuum", set()),
    "purge": ("purge", set()),
    "protect": ("protect", set()),
    "unprotect": ("unprotect", set()),
    # Several tables have no facade.
    "consolidate_log": ("consolidate_log", {"tables", "schema", "parallelism"}),
    "repair": ("check", {"repair"}),
    "store_consolidation_plan": ("plan", {"store"}),
    "store_quantiles": ("quantiles", {"store"}),
    "cancel": ("cancel", set()),
    "suspend": ("suspend", set()),
    "resume": ("resume", set()),
}
METHODS = [(sql_ext.Inspect, name, *of) for name, of in INSPECT.items()] + [
    (sql_ext.Maintenance, name, *of) for name, of in MAINTENANCE.items()
]
TYPES = {
    "STRING": "str",
    "INT": "int",
    "BIGINT": "int",
    "DOUBLE": "float",
    "BOOLEAN": "bool",
    "ARRAY<STRING>": "list[str] | tuple[str, ...]",
    "ARRAY<BIGINT>": "list[int] | tuple[int, ...]",
    "MAP<STRING,STRING>": "dict[str, str]",
}


def _public(kind):
    return {name for name, member in vars(kind).items() if inspect.isfunction(member) and not name.startswith("_")}


@pytest.mark.parametrize(("kind", "method", "procedure", "given"), METHODS)
def test_a_method_has_what_its_procedure_declares(kind, method, procedure, given):
    declared = [p for p in procedures()[procedure].parameters if p.name not in {"table", DETAILS, *given}]
    signature = inspect.signature(getattr(kind, method))
    found = list(signature.parameters.values())[1:]
    assert [p.name for p in found] == [p.name for p in declared]
    for have, want in zip(found, declared, strict=True):
        # Without an id, every run of the table is meant. A dictionary as a default could be changed.
        optional = want.name == "id" or want.default is None or want.default == {}
        kinds = " | ".join([TYPES[want.type], *(kind.__name__ for kind in want.accepts)])
        assert have.annotation == kinds + (" | None" if optional else ""), have
        default = None if optional else inspect.Parameter.empty if want.required else want.default
        assert have.default == default, have
    documented = inspect.getdoc(getattr(kind, method))
    assert all(f"\n    {p.name}: " in documented for p in found)


def test_every_procedure_about_a_table_has_a_method():
    of_tables = {p.name for p in procedures().values() if any(q.name == "table" for q in p.parameters)}
    assert {procedure for _, _, procedure, _ in METHODS} >= of_tables
    assert _public(sql_ext.Maintenance) == set(MAINTENANCE)
    assert _public(sql_ext.Inspect) == {*INSPECT, *VIRTUAL_TABLES}
    assert all(callable(getattr(sql_ext, name)) for name in SYSTEM_TABLES)


SQL_TYPES = {
    "int": "int",
    "bigint": "int",
    "double": "float",
    "boolean": "bool",
    "string": "str",
    "timestamp": "datetime",
    "array<string>": "list[str]",
    "map<string,string>": "dict[str, str]",
    "map<bigint,bigint>": "dict[int, int]",
}


@pytest.mark.parametrize(("kind", "method", "procedure", "given"), METHODS)
def test_rows_have_the_columns_of_the_result(spark, kind, method, procedure, given):
    annotation = inspect.signature(getattr(kind, method)).return_annotation
    # A report is an object with methods.
    annotation = annotation.replace("TableReport", "ReportRow")
    row = getattr(sql_ext, annotation.removeprefix("list[").removesuffix("]"))
    # Compaction is an optimization with one strategy, and reports like one.
    result = {"compact": "optimize"}.get(procedure, procedure)
    assert row.__name__.lower() == result.replace("_", "") + "row"
    declared = StructType.fromDDL(procedures()[procedure].result)
    assert [f.name for f in fields(row)] == declared.names
    types = [SQL_TYPES[f.dataType.simpleString()] for f in declared]
    assert [f.type.removesuffix(" | None") for f in fields(row)] == types


@pytest.mark.parametrize(
    ("arguments", "text", "values"),
    [
        ({}, "CALL use.`vacuum`()", {}),
        ({"table": "a'; DROP"}, "CALL use.`vacuum`(`table` => :v0)", {"v0": "a'; DROP"}),
        ({"x`) --": True}, "CALL use.`vacuum`(`x``) --` => :v0)", {"v0": True}),
        ({"n": 1, "l": ["'", "ü"]}, "", {"v0": 1, "v1": "'", "v2": "ü"}),
        ({"m": {"k'": ":v9"}}, "CALL use.`vacuum`(`m` => CAST(map(:v0, :v1) AS MAP<STRING, STRING>))", None),
        ({"l": [3, 4]}, "CALL use.`vacuum`(`l` => CAST(array(:v0, :v1) AS ARRAY<BIGINT>))", {"v0": 3, "v1": 4}),
        ({"l": [np.int64(3)]}, "CALL use.`vacuum`(`l` => CAST(array(:v0) AS ARRAY<BIGINT>))", {"v0": 3}),
        ({"l": []}, "CALL use.`vacuum`(`l` => CAST(array() AS ARRAY<STRING>))", {}),
    ],
)
def test_a_statement_holds_no_values(arguments, text, values):
    found = call_statement("vacuum", arguments)
    assert text in ("", found[0])
    assert values in (None, found[1])


# ----------------------------------------------------------------------------------------------------- identity


@pytest.fixture(scope="module")
def indexed(spark, shared_table):
    """An indexed table that the tests only look at."""
    return shared_table(NUMBERS, index="x,y", cube_size=50).append(numbers(spark, 300)).index()


def test_names_become_full_names(spark, indexed, tmp_path):
    name = indexed.name.removeprefix("default.")
    full = f"spark_catalog.default.{name}"
    for given in (name, f"`{name}`", indexed.name, full):
        assert sql_ext.table(spark, given) == sql_ext.Table(spark, full)
    assert repr(sql_ext.table(spark, name)) == f"Table('{full}')"
    assert sql_ext.table(spark, name).location == indexed.managed.location
    by_path = sql_ext.table(spark, str(indexed.path))
    assert by_path == sql_ext.table(spark, f"delta.`{indexed.path}`")
    assert by_path.name == f"spark_catalog.delta.`{indexed.path}`"
    assert by_path.inspect.blocks().count() == sql_ext.table(spark, name).inspect.blocks().count() > 0


def test_a_table_known_by_another_name_keeps_the_one_it_was_asked_by(spark, indexed):
    run = application().runs.begin(Run.of(indexed.managed, CALL, {}))
    try:
        assert sql_ext.table(spark, str(indexed.path)).name == f"spark_catalog.delta.`{indexed.path}`"
    finally:
        application().runs.end(run)


@pytest.mark.slow
def test_a_path_that_needs_quotes(spark, tmp_path):
    path = f"{tmp_path}/a b/ü'`.x"
    numbers(spark, 50).write.format("delta").save(path)
    table = sql_ext.table(spark, path)
    assert table.name == "spark_catalog.delta.`" + path.replace("`", "``") + "`"
    table.maintenance.index("x,y")
    assert table.maintenance.optimize()[0].state == "committed"
    (file,) = table.inspect.index_files().collect()
    assert (file.revision_id, file.rows) == (1, 50)
    assert table.inspect.optimizations().count() == 1


@pytest.mark.slow
def test_the_database_of_then_is_kept(spark, indexed):
    table = sql_ext.table(spark, indexed.name.removeprefix("default."))
    spark.sql("CREATE DATABASE elsewhere")
    try:
        spark.sql("USE elsewhere")
        assert table.inspect.revisions().count() == 2
        with pytest.raises(sql_ext.UseError, match="USE_TABLE_NOT_FOUND"):
            sql_ext.table(spark, indexed.name.removeprefix("default."))
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE elsewhere")


REFUSED = {
    "missing": ("default.no_such_table", "USE_TABLE_NOT_FOUND", "42P01"),
    "no folder": ("/no/such/folder", "USE_TABLE_NOT_FOUND", "42P01"),
    "no database": ("nowhere.t", "USE_TABLE_NOT_FOUND", "42P01"),
    "a virtual table": ("{t}.revisions", "USE_NOT_A_DELTA_TABLE", "42809"),
    "a view": ("default.v", "USE_NOT_A_TABLE", "42809"),
    "parquet": ("default.p", "USE_NOT_A_DELTA_TABLE", "42809"),
    "a folder": ("{f}", "USE_NOT_A_DELTA_TABLE", "42809"),
    "not a name": ("a b", "USE_INVALID_TABLE_NAME", "42602"),
    "empty": (" ", "USE_INVALID_TABLE_NAME", "42602"),
    "nothing": (None, "USE_INVALID_TABLE_NAME", "42602"),
    "a path object": (Path("/x"), "USE_INVALID_TABLE_NAME", "42602"),
}


@pytest.mark.quick_sample(4)
@pytest.mark.parametrize(("name", "code", "state"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_delta_table_is_refused_at_once(spark, indexed, tmp_path, name, code, state):
    spark.sql(f"CREATE OR REPLACE VIEW default.v AS SELECT * FROM {indexed.name}")
    spark.sql("CREATE TABLE IF NOT EXISTS default.p USING parquet AS SELECT 1 a")
    given = name.format(t=indexed.name, f=tmp_path) if isinstance(name, str) else name
    try:
        with pytest.raises(sql_ext.UseError) as refused:
            sql_ext.table(spark, given)
    finally:
        spark.sql("DROP VIEW default.v")
        spark.sql("DROP TABLE default.p")
    assert (refused.value.code, refused.value.sql_state) == (code, state)


def test_a_session_that_is_not_attached(spark, indexed):
    table = sql_ext.table(spark, indexed.name)
    spark._jvm.io.usespark.Bridge.instance().attach(None)
    try:
        for use in (
            lambda: sql_ext.table(spark, indexed.name),
            lambda: sql_ext.metastore_summary(spark),
            lambda: sql_ext.optimizations(spark),
            lambda: sql_ext.status(spark),
            table.inspect.revisions,
        ):
            with pytest.raises(sql_ext.UseError) as refused:
                use()
            assert (refused.value.code, refused.value.sql_state) == ("USE_NOT_ATTACHED", "55000")
    finally:
        sql_ext.attach(spark)


@pytest.mark.parametrize(
    "use",
    [
        sql_ext.attach,
        lambda session: sql_ext.call(session, "help"),
        lambda session: sql_ext.table(session, "default.t"),
        lambda session: sql_ext.Table(session, "default.t").maintenance.optimize(),
        lambda session: sql_ext.Table(session, "default.t").inspect.status(),
        lambda session: sql_ext.Table(session, "default.t").inspect.cubes(),
    ],
)
def test_a_session_that_has_ended_is_refused(spark, use):
    ended = copy.copy(spark)
    ended._sc = SimpleNamespace(_jsc=None)
    with pytest.raises(sql_ext.UseError, match="The session has ended") as refused:
        use(ended)
    assert refused.value.code == "USE_NOT_ATTACHED"


def test_a_server_without_our_catalogs(spark):
    class Client:
        """A client of a driver that was not configured: there, no catalog has the name."""

        def sql(self, text, values):
            return spark.sql(text.replace("CALL use.", "CALL no_such_catalog."), values)

    with pytest.raises(sql_ext.UseError, match=r"sql_ext\.configure") as refused:
        sql_ext.table(Client(), "default.t")
    assert (refused.value.code, refused.value.sql_state) == ("USE_NOT_ATTACHED", "55000")


# ---------------------------------------------------------------------------------------------------- not stale


def _uses(table):
    return {
        "location": lambda: table.location,
        **{name: getattr(table.inspect, name) for name in VIRTUAL_TABLES},
        "plan": table.inspect.plan,
        "recommend": lambda: table.inspect.recommend(["SELECT 1"]),
        "consolidation_plan": table.inspect.consolidation_plan,
        "clustering_information": table.inspect.clustering_information,
        "health": table.inspect.health,
        "report": table.inspect.report,
        "check": table.inspect.check,
        "quantiles": lambda: table.inspect.quantiles("x"),
        "status": table.inspect.status,
        "index": lambda: table.maintenance.index("x"),
        "drop_index": table.maintenance.drop_index,
        "optimize": table.maintenance.optimize,
        "compact": table.maintenance.compact,
        "vacuum": table.maintenance.vacuum,
        "purge": table.maintenance.purge,
        "protect": lambda: table.maintenance.protect(0, "n"),
        "unprotect": lambda: table.maintenance.unprotect("n"),
        "repair": table.maintenance.repair,
        "consolidate_log": table.maintenance.consolidate_log,
        "store_consolidation_plan": table.maintenance.store_consolidation_plan,
        "store_quantiles": lambda: table.maintenance.store_quantiles("x"),
        "cancel": table.maintenance.cancel,
        "suspend": table.maintenance.suspend,
        "resume": table.maintenance.resume,
    }


def test_after_a_rename_every_use_is_refused_and_touches_nothing(spark, new_table):
    made = new_table(NUMBERS, index="x,y").append(numbers(spark, 20))
    table = sql_ext.table(spark, made.name)
    moved = f"{made.name}_moved"
    made.sql(f"ALTER TABLE {{t}} RENAME TO {moved}")
    try:
        before = spark.sql(f"DESCRIBE HISTORY {moved}").count()
        uses = _uses(table)
        assert set(uses) == {"location", *_public(sql_ext.Inspect), *_public(sql_ext.Maintenance)}
        for name, use in uses.items():
            with pytest.raises(sql_ext.UseError) as refused:
                use()
            assert refused.value.code == "USE_TABLE_NOT_FOUND", name
            assert table.name in str(refused.value), name
        assert spark.sql(f"DESCRIBE HISTORY {moved}").count() == before
    finally:
        spark.sql(f"DROP TABLE {moved}")


@pytest.mark.slow
def test_a_table_made_anew_is_the_one_that_is_meant(spark, new_table):
    made = new_table(NUMBERS, index="x,y").append(numbers(spark, 20))
    table = sql_ext.table(spark, made.name)
    files = table.inspect.index_files()
    assert files.count() == 1
    made.append(numbers(spark, 20))
    assert files.count() == 2, "rows are computed when they are read"
    made.sql("DROP TABLE {t}")
    spark.sql(f"CREATE TABLE {made.name} (a INT) USING delta")
    assert table.inspect.index_files().count() == 0


# ---------------------------------------------------------------------------------------------------- to look


@pytest.mark.slow
@pytest.mark.parametrize("name", VIRTUAL_TABLES)
def test_virtual_tables(spark, indexed, name):
    table = sql_ext.table(spark, indexed.name)
    if name == "consumption":
        indexed.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.insights.consumption.enabled' = 'true')")
        indexed.data.collect()
        ShimBridge(spark).flush_scans()
    if name == "plans" and not table.inspect.plans().count():
        assert table.maintenance.store_consolidation_plan(max_file_bytes=1)
    rows = getattr(table.inspect, name)()
    wanted = spark.sql(f"SELECT * FROM {indexed.name}.{name}")
    assert rows.schema == wanted.schema
    assert sorted(map(str, rows.collect())) == sorted(map(str, wanted.collect()))
    assert rows.count() > 0


@pytest.mark.slow
def test_reports_are_the_rows_of_sql(spark, indexed):
    table = sql_ext.table(spark, indexed.name)
    for found, procedure, arguments in (
        (table.inspect.plan(strategy="UnindexedFiles"), "optimize", "strategy => 'UnindexedFiles', dry_run => true"),
        (table.inspect.clustering_information("y"), "clustering_information", "columns => 'y'"),
        (table.inspect.health(), "health", ""),
        (table.inspect.check(), "check", ""),
        (
            table.inspect.quantiles("y", n=3, relative_error=0.1),
            "quantiles",
            "column => 'y', n => 3, relative_error => 0.1",
        ),
        (table.inspect.status(), "status", "details => true"),
        (table.maintenance.vacuum(dry_run=True), "vacuum", "dry_run => true"),
    ):
        more = f", {arguments}" if arguments else ""
        rows = spark.sql(f"CALL use.{procedure}(table => '{indexed.name}'{more})")
        kind = type(found[0]) if found else sql_ext.VacuumRow
        assert found == typed_rows(kind, rows), procedure
        assert found or procedure == "vacuum"


@pytest.mark.slow
def test_a_plan_changes_nothing(spark, new_table):
    made = new_table(NUMBERS, index="x,y").append(numbers(spark, 20)).append(numbers(spark, 20))
    table, before = sql_ext.table(spark, made.name), made.state()
    (planned,) = table.inspect.plan()
    assert (planned.state, planned.input_files, planned.rows) == ("planned", 2, 40)
    (planned,) = table.inspect.plan(files=sorted(made.paths)[:1], where="y >= 0", options={})
    assert planned.input_files == 1
    (planned,) = table.inspect.plan(files=sorted(made.paths), strategy="StepConsolidation")
    assert (planned.reason, planned.input_files) == ("NAMED_FILES_2_TO_1", 2)
    assert [row.check for row in table.inspect.check()] == ["SUMMARY"]
    assert len(table.inspect.quantiles("y", n=2)) == 2
    assert made.state() == before


def test_status_has_moments_with_a_zone(spark, new_table):
    made = new_table(NUMBERS, index="x,y")
    table = sql_ext.table(spark, made.name)
    begun = SYSTEM_CLOCK.now()
    assert table.inspect.status()[0].state == "idle"
    assert acquire(made.managed, "abc", CALL, begun) == Acquired()
    (row,) = table.inspect.status()
    assert (row.table, row.state, row.run_id) == (table.name, "running", "abc")
    assert row.started_at.tzinfo is timezone.utc
    assert row.started_at.timestamp() * 1000 == pytest.approx(begun)


def test_all_tables(spark, indexed):
    full = f"spark_catalog.{indexed.name}"
    summary = sql_ext.metastore_summary(spark).where(f"name = '{indexed.name.removeprefix('default.')}'")
    assert [tuple(r) for r in summary.select("catalog", "index_columns").collect()] == [("spark_catalog", ["x", "y"])]
    assert sql_ext.optimizations(spark).where(f"table = '{full}'").count() == 1
    run = application().runs.begin(Run.of(indexed.managed, CALL, {}))
    try:
        assert [(row.table, row.run_id) for row in sql_ext.status(spark)] == [(full, run.run_id)]
    finally:
        application().runs.end(run)


# ----------------------------------------------------------------------------------------------------- to act


@pytest.mark.slow
def test_the_life_of_an_index(spark, new_table):
    made = new_table(NUMBERS).append(numbers(spark, 60)).append(numbers(spark, 60))
    table, before = sql_ext.table(spark, made.name), made.checksum()
    indexed = table.maintenance.index(
        "x,y", cube_size=20, target_file_bytes=1_000_000, column_stats='{"y_min":0,"y_max":9}'
    )
    assert (indexed.table, indexed.converted, indexed.unindexed_files) == (table.name, False, 2)
    assert indexed.properties["use.index.cubeSize"] == "20"
    report = table.maintenance.optimize(strategy="UnindexedFiles", max_iterations=1, options={"batch_bytes": "1"})
    assert [(row.state, row.input_files) for row in report] == [("committed", 1), ("skipped", 0)]
    assert table.maintenance.optimize(files=[f.path for f in made.unindexed])[0].state == "committed"
    assert not made.unindexed
    assert "ROW_OUTSIDE_BLOCKS" in table.inspect.check(deep=True)[-1].message
    assert [row.value for row in table.maintenance.store_quantiles("x", n=2)] == [
        row.value for row in table.inspect.quantiles("x", n=2)
    ]
    assert "x_quantiles" in made.sql("SHOW TBLPROPERTIES {t} ('use.index.columnStats')")[0].value
    assert table.maintenance.vacuum(dry_run=True, retention_hours=0.0)[0].state == "planned"
    deleted, kept = table.maintenance.vacuum(retention_hours=0.0, force=True)
    assert (deleted.state, deleted.files, kept.state) == ("deleted", 2, "kept")
    dropped = table.maintenance.drop_index()
    assert dropped.files == len(made.files) == len(made.unindexed)
    assert "use.index.columns" in dropped.properties
    assert made.checksum() == before


@pytest.mark.slow
def test_repair_takes_the_tags_off(spark, new_table):
    made = new_table(NUMBERS, index="x,y", cube_size=20).append(numbers(spark, 60)).index()
    made.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('qbeast.revision.1', 'qbeast.lastRevisionID')")
    table = sql_ext.table(spark, made.name)
    assert {row.check for row in table.inspect.check()} == {"REVISION_UNKNOWN", "SUMMARY"}
    assert not made.unindexed
    assert "repaired" in table.maintenance.repair()[0].message
    assert made.unindexed
    assert [row.severity for row in table.inspect.check()] == ["ok"]


def test_suspending_and_resuming(spark, new_table):
    table = sql_ext.table(spark, new_table(NUMBERS, index="x,y").name)
    assert table.maintenance.suspend().state == "suspended"
    assert table.inspect.status()[0].state == "suspended"
    assert table.maintenance.resume().state == "idle"


def test_cancelling_runs_of_the_table(spark, new_table):
    made, other = new_table(NUMBERS, index="x,y"), new_table(NUMBERS, index="x,y")
    table = sql_ext.table(spark, made.name)
    assert table.maintenance.cancel() == []
    runs = [Run.of(made.managed, CALL, {}), Run.of(made.managed, CALL, {}), Run.of(other.managed, CALL, {})]
    for run in runs:
        application().runs.begin(run)
    try:
        with pytest.raises(sql_ext.UseError, match=runs[0].run_id) as refused:
            table.maintenance.cancel(runs[2].run_id)
        assert refused.value.code == "USE_UNKNOWN_RUN"
        assert not any(run.stop_reason for run in runs)
        (asked,) = table.maintenance.cancel(runs[1].run_id)
        assert (asked.run_id, asked.table, asked.state) == (runs[1].run_id, table.name, "stopping")
        assert [bool(run.stop_reason) for run in runs] == [False, True, False]
        assert {row.run_id for row in table.maintenance.cancel()} == {run.run_id for run in runs[:2]}
        assert [bool(run.stop_reason) for run in runs] == [True, True, False]
    finally:
        for run in runs:
            application().runs.end(run)


def test_maintenance_of_another_process_is_not_asked(spark, new_table):
    made = new_table(NUMBERS, index="x,y")
    assert acquire(made.managed, "elsewhere", CALL, SYSTEM_CLOCK.now()) == Acquired()
    table = sql_ext.table(spark, made.name)
    assert table.inspect.status()[0].run_id == "elsewhere"
    assert table.maintenance.cancel() == []
    with pytest.raises(sql_ext.UseError, match="cannot be cancelled from another process") as refused:
        table.maintenance.cancel("elsewhere")
    assert refused.value.code == "USE_NOT_SUPPORTED"
    with pytest.raises(sql_ext.UseError, match="elsewhere") as unknown:
        table.maintenance.cancel("nobody")
    assert unknown.value.code == "USE_UNKNOWN_RUN"


WRONG = {
    "type": (lambda t: t.maintenance.optimize(max_iterations="3"), "USE_INVALID_ARGUMENT", "max_iterations = '3'"),
    "files as text": (lambda t: t.inspect.plan(files="a.parquet"), "USE_INVALID_ARGUMENT", "files = 'a.parquet'"),
    "option": (lambda t: t.inspect.plan(options={"nix": "1"}), "USE_UNKNOWN_OPTION", "nix"),
    "strategy": (lambda t: t.maintenance.optimize(strategy="Leveled"), "USE_UNKNOWN_STRATEGY", "Leveled"),
    "column": (lambda t: t.maintenance.index("x,nix"), "USE_UNKNOWN_COLUMN", "nix"),
    "no column": (lambda t: t.maintenance.index(None), "USE_INVALID_ARGUMENT", "columns"),
    "retention": (lambda t: t.maintenance.vacuum(retention_hours=1), "USE_RETENTION_TOO_SHORT", "retention_hours = 1"),
    "run": (lambda t: t.maintenance.cancel(5), "USE_INVALID_ARGUMENT", "id = 5"),
    "quantiles": (lambda t: t.inspect.quantiles("y", n=1), "USE_INVALID_ARGUMENT", "n = 1"),
}


@pytest.mark.parametrize(("use", "code", "named"), WRONG.values(), ids=WRONG)
def test_arguments_are_refused_before_anything_is_touched(spark, indexed, use, code, named):
    table, before = sql_ext.table(spark, indexed.name), indexed.state()
    with pytest.raises(sql_ext.UseError) as refused:
        use(table)
    assert refused.value.code == code
    assert named in refused.value.message
    assert indexed.state() == before
