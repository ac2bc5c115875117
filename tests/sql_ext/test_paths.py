"""One table under all its spellings, and paths that look like a table and are none."""

import itertools

import pytest
from pyspark.errors import AnalysisException
from tables import DeltaTable

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.history.event_store import optimizations, record_ignored
from catalog.history.events import event_without_commit
from catalog.jvm.log_probe import qualified
from catalog.state.automation import SCHEDULED, Automation
from catalog.state.lease import Acquired, acquire, holder_of
from catalog.state.suspension import is_suspended, suspension_of
from catalog.table.managed_table import ManagedTable
from procedures.process.application import application
from procedures.process.running_services import RunningServices
from procedures.service.watched_tables import SparkTables

ALREADY_THERE = {"help", "cancel", "explain_skipping", "approximate", "fleet"}  # the procedures without a table
MORE = {
    "index": {"columns": "id"},
    "quantiles": {"column": "id"},
    "protect": {"version": 0, "name": "n"},
    "unprotect": {"name": "n"},
}


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """A table ``t`` of two versions, which the metastore has too, a link to it, and a partitioned table ``parted``."""
    folder = tmp_path_factory.mktemp("paths")
    spark.range(3).coalesce(1).write.format("delta").save(f"{folder}/t")
    spark.sql(f"ALTER TABLE delta.`{folder}/t` SET TBLPROPERTIES ('use.index.columns' = 'id')")
    spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").format("delta").save(f"{folder}/parted")
    (folder / "link").symlink_to(folder / "t")
    spark.sql(f"CREATE TABLE default.By_Name USING delta LOCATION '{folder}/t'")
    yield folder
    spark.sql("DROP TABLE default.by_name")


def by_name():
    return ["by_name", "default.by_name", "DEFAULT.BY_NAME", "`default`.`By_Name`", "Spark_Catalog.default.by_name"]


def by_path(path):
    return [
        *(f"delta.`{p}`" for p in (path, f"{path}/", f"file:{path}", f"{path[:-2]}//t")),
        f"DELTA.`{path}`",
        f"qbeast.`{path}`",
        f"spark_catalog.delta.`{path}`",
        *(path, f"{path}/", f"{path}/.", f"{path}/../t", path.replace("/paths", "///paths")),
        *(f"file:{path}", f"file://{path}", f"file:{path}//"),
    ]


def test_all_spellings_are_one_table(spark, folder):
    path = f"{folder}/t"
    names = [*by_name(), *by_path(path), f"{folder}/link", f"delta.`{folder}/link/`"]
    found = {name: ManagedTable.find(spark, name) for name in names}
    assert {found[n].name for n in by_name()} == {"spark_catalog.default.by_name"}
    assert {found[n].name for n in by_path(path)} == {f"spark_catalog.delta.`{path}`"}
    # A link is another path to the same files: its own to Delta, the same place to the service.
    assert {found[n].location for n in [*by_name(), *by_path(path)]} == {f"file:{path}"}
    assert {qualified(spark, table.location) for table in found.values()} == {f"file:{path}"}
    tables = SparkTables(spark)
    assert {tables.add(table.name, table.location) for table in found.values()} == {f"file:{path}"}
    assert tables.listed()[f"file:{path}"] == "spark_catalog.default.by_name"
    only = SparkTables(spark, [f"{folder}/link/"])
    assert all(only.add(table.name, table.location) is not None for table in found.values())

    # Lease and events.
    first = found["by_name"]
    assert acquire(first, "a-run", "call", SYSTEM_CLOCK.now()) == Acquired()
    record_ignored(first, event_without_commit("S", "manual", "SUSPENDED", {}, (1, 1)))
    assert {lease.run_id for table in found.values() if (lease := holder_of(table, SYSTEM_CLOCK.now()))} == {"a-run"}
    assert all(holder_of(table, SYSTEM_CLOCK.now()) for table in found.values())
    first.delete_state("lease.json")
    for name in ("BY_NAME", path, f"{folder}/link"):
        assert [row.reason for row in optimizations(ManagedTable.find(spark, name)).collect()] == ["SUSPENDED"]

    # Suspended under one spelling, resumed under the next.
    for suspend, resume in itertools.pairwise([*names, names[0]][::3]):
        sql_ext.call(spark, "suspend", table=suspend)
        assert suspension_of(found[resume]) is not None
        assert is_suspended(spark, found[resume].location)
        sql_ext.call(spark, "resume", table=resume)
        assert suspension_of(found[suspend]) is None
    assert {p.name for p in folder.iterdir()} == {"t", "parted", "link"}
    assert {p.name for p in (folder / "t/_use").iterdir() if not p.name.startswith(".")} == {"events"}


@pytest.mark.slow
def test_status_and_summary_know_a_table_by_its_place(spark, folder):
    spark.sql(f"CREATE TABLE default.by_link USING delta LOCATION '{folder}/link'")
    application().automations.put(
        Automation("spark_catalog.default.by_name", f"file:{folder}/t", SCHEDULED, ("UnindexedFiles",))
    )
    try:
        for name in ("BY_NAME", f"{folder}/t/", f"delta.`{folder}/link`"):
            (row,) = sql_ext.call(spark, "status", table=name, details=True).collect()
            assert (row.location, row.state) == (f"file:{folder}/t", SCHEDULED)
        rows = sql_ext.metastore_summary(spark).where("name in ('by_name', 'by_link') OR catalog IS NULL").collect()
        assert sorted((row.name, row.state) for row in rows) == [("by_link", SCHEDULED), ("by_name", SCHEDULED)]
    finally:
        application().automations.remove(f"file:{folder}/t")
        spark.sql("DROP TABLE default.by_link")


def test_what_the_service_hears_has_one_name(spark, folder, monkeypatch):
    heard = []
    monkeypatch.setattr(RunningServices, "notify", lambda _, change: heard.append(change))
    bridge = spark._jvm.io.usespark.Bridge.instance()
    bridge.listen(True)
    try:
        for name in ("DEFAULT.By_name", f"delta.`file:{folder}/t/`", f"qbeast.`{folder}//t`"):
            spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('note' = 'x')")
        spark.sql("CREATE TABLE default.Short_Lived (a INT) USING delta")
        spark.sql("ALTER TABLE DEFAULT.SHORT_lived RENAME TO default.Renamed")
        spark.sql("DROP TABLE Default.RENAMED")
    finally:
        bridge.listen(False)
    kinds = [(told.kind, told.name, told.before) for told in heard]
    assert kinds[:3] == [
        ("changed", "spark_catalog.default.by_name", ""),
        ("changed", f"spark_catalog.delta.`{folder}/t`", ""),
        ("changed", f"spark_catalog.delta.`{folder}/t`", ""),
    ]
    assert {told.location for told in heard[:3]} == {f"file:{folder}/t"}
    assert kinds[-2:] == [
        ("renamed", "spark_catalog.default.renamed", "spark_catalog.default.short_lived"),
        ("dropped", "spark_catalog.default.renamed", ""),
    ]


VERSIONS = ["@v0", "@V1", "@v99", "@20200101000000000", "/@v0"]


def test_every_procedure_refuses_a_version_and_a_folder_of_a_table(spark, folder):
    table = DeltaTable(spark, f"delta.`{folder}/t`")
    before = table.state(), sorted(p.name for p in folder.iterdir())
    from procedures.calls.registry import procedures

    wrong = [(f"{folder}/t{version}", "USE_TIME_TRAVEL") for version in VERSIONS]
    wrong += [(f"delta.`file:{folder}/t@v0`", "USE_TIME_TRAVEL"), (f"qbeast.`{folder}/t@v0`", "USE_TIME_TRAVEL")]
    wrong += [(f"{folder}/parted/p=1@v0", "USE_TIME_TRAVEL"), ("default.by_name@v0", "USE_TIME_TRAVEL")]
    wrong += [("default.by_name VERSION AS OF 0", "USE_TIME_TRAVEL")]
    wrong += [("by_name FOR SYSTEM_TIME AS OF '2020-01-01'", "USE_TIME_TRAVEL")]
    wrong += [(f"{folder}/parted/p=1", "USE_NOT_A_TABLE"), (f"{folder}/parted/p=7", "USE_TABLE_NOT_FOUND")]
    wrong += [(f"{folder}/t/_delta_log", "USE_NOT_A_DELTA_TABLE")]
    for name in sorted(set(procedures()) - ALREADY_THERE):
        for place, code in wrong:
            with pytest.raises(sql_ext.UseError) as found:
                sql_ext.call(spark, name, table=place, **MORE.get(name, {}))
            assert found.value.code == code, (name, place, found.value)
            assert place in found.value.message
    with pytest.raises(AnalysisException, match="omit the version") as in_sql:
        spark.sql(f"CALL use.optimize('{folder}/t@v0')")
    assert in_sql.value.getCondition() == "USE_TIME_TRAVEL"
    assert (table.state(), sorted(p.name for p in folder.iterdir())) == before
    assert spark.sql(f"SELECT * FROM delta.`{folder}/t@v0`").count() == 3


@pytest.mark.quick_sample(5)
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SELECT * FROM delta.`{t}@v0`.optimizations", "USE_TIME_TRAVEL"),
        ("SELECT * FROM qbeast.`{t}@v0`.cubes", "USE_TIME_TRAVEL"),
        ("SELECT * FROM use_catalog.spark_catalog.delta.`{t}@v0`.blocks", "USE_TIME_TRAVEL"),
        ("SELECT * FROM delta.`{parted}/p=1`.revisions", "USE_NOT_A_TABLE"),
        ("ALTER TABLE delta.`{t}@v0` SET TBLPROPERTIES ('use.index.cubeSize' = '5')", "USE_TIME_TRAVEL"),
        ("ALTER TABLE delta.`{t}@v0` UNSET TBLPROPERTIES ('use.index.columns')", "USE_TIME_TRAVEL"),
        ("ALTER TABLE qbeast.`{t}@v0` UNSET TBLPROPERTIES ('use.index.columns')", "USE_TIME_TRAVEL"),
        ("ALTER TABLE delta.`{parted}/p=1` SET TBLPROPERTIES ('use.index.columns' = 'id')", "USE_NOT_A_TABLE"),
        ("ALTER TABLE use_catalog.spark_catalog.delta.`{t}@v0` SET TBLPROPERTIES ('a' = 'b')", "USE_TIME_TRAVEL"),
        ("ALTER TABLE use_catalog.spark_catalog.delta.`{t}@v0` UNSET TBLPROPERTIES ('a')", "USE_TIME_TRAVEL"),
        ("SELECT * FROM default.by_name.cubes VERSION AS OF 0", "USE_NOT_SUPPORTED"),
        ("SELECT * FROM delta.`{t}`.blocks TIMESTAMP AS OF '2020-01-01'", "USE_NOT_SUPPORTED"),
        ("SELECT * FROM default.by_name.cubes WITH ('versionAsOf' = '0')", "USE_NOT_SUPPORTED"),
        ("SELECT * FROM use_catalog.spark_catalog.default.by_name.cubes VERSION AS OF 0", "USE_NOT_SUPPORTED"),
        ("SELECT * FROM use_catalog.system_lake_tables.optimizations VERSION AS OF 0", "USE_NOT_SUPPORTED"),
    ],
)  # fmt: skip
def test_virtual_tables_and_properties_of_a_version(spark, folder, statement, code):
    properties = ManagedTable.find(spark, f"{folder}/t").snapshot().configuration
    with pytest.raises(AnalysisException) as found:
        spark.sql(statement.format(t=f"{folder}/t", parted=f"{folder}/parted")).collect()
    assert found.value.getCondition() == code
    assert "\n" not in str(found.value).strip()
    assert ManagedTable.find(spark, f"{folder}/t").snapshot().configuration == properties
    assert {p.name for p in folder.iterdir()} == {"t", "parted", "link"}


@pytest.mark.slow
def test_a_table_that_is_called_like_a_version(spark, tmp_path):
    for name in ("t", "t@v0"):
        spark.range(2).write.format("delta").save(f"{tmp_path}/{name}")
    made = ManagedTable.find(spark, f"{tmp_path}/t@v0")
    assert made.location == f"file:{tmp_path}/t@v0"
    sql_ext.call(spark, "suspend", table=f"delta.`{tmp_path}/t@v0`")
    assert suspension_of(made) is not None
    assert suspension_of(ManagedTable.find(spark, f"{tmp_path}/t")) is None


@pytest.mark.parametrize("by_name", [False, True], ids=["by path", "by name"])
def test_a_table_whose_folder_was_away_for_a_moment(spark, new_table, tmp_path, by_name):
    table = new_table("id BIGINT").append(spark.range(3).toDF("id"))
    name = table.name if by_name else f"delta.`{table.path}`"
    assert sql_ext.call(spark, "status", table=name).collect()
    place, away = table.path, tmp_path / "away"
    place.rename(away)
    with pytest.raises(sql_ext.UseError):
        sql_ext.call(spark, "health", table=name).collect()
    # Delta caches for the session that nothing is there.
    with pytest.raises(sql_ext.UseError) as missing:
        sql_ext.call(spark, "status", table=name).collect()
    assert missing.value.code == "USE_TABLE_NOT_FOUND"
    away.rename(place)
    assert sql_ext.call(spark, "status", table=name).collect()
    assert spark.sql(f"SELECT * FROM {name}").count() == 3
