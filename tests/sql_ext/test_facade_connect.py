"""The facade from a Spark Connect client: the same answers and the same typed errors as in the driver."""

import json
import os
import subprocess
import sys
import time
from datetime import timezone
from pathlib import Path

import pytest
from server_process import wait_for

import sql_ext

SUPPORT = Path(__file__).resolve().parents[1] / "support"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a driver in another process."""
    from pyspark.sql.connect.session import SparkSession

    folder = tmp_path_factory.mktemp("connect")
    with (folder / "log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, str(SUPPORT / "connect_driver.py"), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SUPPORT.parents[1], SUPPORT)))},
            text=True,
        )
    port = driver.stdout.readline().strip()
    assert port.isdigit(), (folder / "log").read_text()[-3000:]
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    yield session
    session.client.close()
    driver.communicate(timeout=60)
    assert driver.returncode == 0


@pytest.fixture
def made(client, tmp_path):
    """A table by a path with a blank, a quote, a backquote, a dot and a letter of no ASCII."""
    path = f"{tmp_path}/a b/it's`ü.x"
    client.range(0, 300, 1, 2).selectExpr("id", "id % 10 AS y").write.format("delta").save(path)
    return sql_ext.table(client, path), path


def test_nothing_of_connect_is_imported_without_need():
    code = (
        "import sql_ext, sys; sys.exit(any(m == 'grpc' or m.startswith('pyspark.sql.connect.') for m in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(SUPPORT.parents[1])})


def test_the_life_of_an_index(client, made):
    table, path = made
    assert table.name == "spark_catalog.delta.`" + path.replace("`", "``") + "`"
    assert table.location.endswith("it's`ü.x")
    assert table.maintenance.index("id,y", cube_size=100, column_stats='{"y_min": 0, "y_max": 9}').unindexed_files == 2
    before = [row.path for row in table.inspect.index_files().collect()]
    (planned,) = table.inspect.plan(files=before[:1], options={})
    assert (planned.state, planned.input_files) == ("planned", 1)
    report = table.maintenance.optimize(
        strategy="UnindexedFiles", where="y >= 0 AND 'it''s' <> ''", options={"batch_bytes": "10000000"}
    )
    # Of a call that ran again when its rows are read, they would say that there is nothing to do.
    assert [(row.state, row.input_files, row.rows) for row in report] == [("committed", 2, 300)]
    (event,) = table.inspect.optimizations().collect()
    assert (event.trigger, event.version) == ("call", report[0].version)
    assert [row.revision_id for row in table.inspect.revisions().collect()] == [0, 1]
    assert table.inspect.cubes().count() >= 1
    assert table.inspect.blocks().count() >= 1
    assert [row.columns for row in table.inspect.clustering_information("id,y")] == ["id", "y", "id, y"]
    assert [row.severity for row in table.inspect.check(deep=True)] == ["ok"]
    assert [row.value for row in table.inspect.quantiles("y", n=2)] == ["0", "9"]
    assert [row.value for row in table.maintenance.store_quantiles("y", n=2)] == ["0", "9"]
    assert [row.check for row in table.maintenance.repair()] == ["SUMMARY"]
    deleted, kept = table.maintenance.vacuum(retention_hours=0, force=True)
    assert (deleted.files, deleted.state, kept.state) == (2, "deleted", "kept")
    assert table.maintenance.suspend().state == "suspended"
    assert table.inspect.status()[0].state == "suspended"
    assert table.maintenance.resume().state == "idle"
    assert table.maintenance.cancel() == []
    assert table.maintenance.drop_index().files == 1


def test_a_call_runs_once(client):
    rows = sql_ext.call(client, "count_calls")
    assert (rows.collect(), rows.count(), rows.collect()) == ([(1,)], 1, [(1,)])
    assert sql_ext.call(client, "count_calls").collect() == [(2,)]


def test_all_tables(client):
    client.sql("CREATE TABLE default.`1st` (a INT) USING delta TBLPROPERTIES ('use.index.columns' = 'a')")
    table = sql_ext.table(client, "1st")
    assert table == sql_ext.table(client, "default.`1st`")
    assert table.name == "spark_catalog.default.`1st`"
    assert table.inspect.index_files().count() == 0
    summary = sql_ext.metastore_summary(client).select("name", "index_columns").collect()
    assert [tuple(row) for row in summary] == [("1st", ["a"])]
    assert sql_ext.optimizations(client).count() == 0
    assert sql_ext.status(client) == []
    client.sql("ALTER TABLE default.`1st` RENAME TO default.second")
    for use in (table.inspect.blocks, table.maintenance.optimize, table.inspect.status):
        with pytest.raises(sql_ext.UseError) as refused:
            use()
        assert (refused.value.code, refused.value.sql_state) == ("USE_TABLE_NOT_FOUND", "42P01")
    client.sql("DROP TABLE default.second")


def test_moments_have_a_zone(client, made):
    table, path = made
    folder = Path(path, "_use")
    folder.mkdir()
    acquired = 1000 * int(time.time())
    times = {"acquired_at": acquired, "expires_at": acquired + 60_000}
    lease = json.dumps({"run_id": "abc", "holder": "test", "trigger": "cli", **times})
    (folder / "lease.json").write_text(lease)
    (row,) = table.inspect.status()
    assert (row.run_id, row.lease_holder) == ("abc", "test")
    assert row.started_at.tzinfo is timezone.utc
    assert row.started_at.timestamp() == acquired / 1000


REFUSED = {
    "missing": (lambda s, t: sql_ext.table(s, "default.nix"), "USE_TABLE_NOT_FOUND", "42P01", "'default.nix'"),
    "not a name": (lambda s, t: sql_ext.table(s, "a.`b"), "USE_INVALID_TABLE_NAME", "42602", "'a.`b'"),
    "a view": (lambda s, t: sql_ext.table(s, "v"), "USE_NOT_A_TABLE", "42809", "'v' is a view"),
    "a type": (lambda s, t: t.maintenance.optimize(max_iterations="3"), "USE_INVALID_ARGUMENT", "22023", "= '3'"),
    "no files": (lambda s, t: t.maintenance.optimize(files=[]), "USE_INVALID_ARGUMENT", "22023", "files"),
    "a strategy": (lambda s, t: t.inspect.plan(strategy="Nix"), "USE_UNKNOWN_STRATEGY", "42704", "Known: "),
    "a column": (lambda s, t: t.maintenance.index("'nix'"), "USE_UNKNOWN_COLUMN", "42703", "'nix'"),
    "retention": (lambda s, t: t.maintenance.vacuum(retention_hours=1), "USE_RETENTION_TOO_SHORT", "22023", "168"),
    "no index": (lambda s, t: t.maintenance.drop_index(), "USE_NOT_INDEXED", "55000", "no index"),
    "a run": (lambda s, t: t.maintenance.cancel("abc"), "USE_UNKNOWN_RUN", "42704", "'abc'"),
    "a procedure": (lambda s, t: sql_ext.call(s, "optimise`"), "USE_UNKNOWN_PROCEDURE", "42883", "optimize?"),
    "a parameter": (lambda s, t: sql_ext.call(s, "optimize", tabel="t"), "USE_UNKNOWN_PARAMETER", "42704", "table?"),
    "attach": (lambda s, t: sql_ext.attach(s), "USE_NOT_SUPPORTED", "0A000", "attach"),
    "a report": (lambda s, t: sql_ext.read_report(s.range(1)), "USE_NOT_SUPPORTED", "0A000", "read_report"),
    "register": (lambda s, t: sql_ext.register_procedure(s, None), "USE_NOT_SUPPORTED", "0A000", "register_procedure"),
}


@pytest.mark.parametrize(("use", "code", "state", "named"), REFUSED.values(), ids=REFUSED)
def test_refusals_are_typed(client, made, use, code, state, named):
    client.range(1).createOrReplaceTempView("v")
    with pytest.raises(sql_ext.UseError) as refused:
        use(client, made[0])
    assert (refused.value.code, refused.value.sql_state) == (code, state)
    assert named in refused.value.message
    assert not refused.value.message.startswith("[")
    assert "SQLSTATE" not in refused.value.message.partition(": [")[0]
    assert "\n" not in refused.value.message, "one line, without the server's stack"


def test_errors_of_spark_stay_what_they_are(client, made):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as found:
        sql_ext.call(client, "count_calls", nix=1)
    assert not (found.value.getCondition() or "").startswith("USE_")


def test_queries_of_a_client_are_recorded(client, made):
    table, path = made
    named = path.replace("`", "``")
    client.sql(f"ALTER TABLE delta.`{named}` SET TBLPROPERTIES ('use.insights.consumption.enabled' = 'true')")
    assert len(client.sql(f"SELECT id FROM delta.`{named}` WHERE y = 3").collect()) == 30
    (row,) = wait_for(lambda: table.inspect.consumption().collect(), "records of a scan")
    assert (row.session_kind, row.rows_kept, [f.column for f in row.filters]) == ("connect", 30, ["y"])
    assert row.statement_id
    assert row.user_name
