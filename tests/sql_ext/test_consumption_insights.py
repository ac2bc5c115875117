"""``<table>.consumption``: what queries leave there, compared with the log, the data and the queries themselves."""

import json
from types import SimpleNamespace

import pytest
from folders import memory_table
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

import sql_ext
from catalog.errors import InvalidArgumentError
from catalog.insights import consumption
from catalog.insights.consumption import CONSUMPTION_FOLDER, add_scans, trim_scans
from catalog.jvm.application_metrics import ApplicationMetrics
from catalog.jvm.shim_bridge import ShimBridge
from catalog.properties.insight_properties import ScanRetention, insights_policy
from catalog.state.line_folder import GRACE_MILLIS
from catalog.table.managed_table import ManagedTable

ENABLED = "use.insights.consumption.enabled"
DAY = 86_400_000


def _rows(spark, table):
    ShimBridge(spark).flush_scans()
    return spark.sql(f"SELECT * FROM {table.name}.consumption ORDER BY execution_id").collect()


@pytest.fixture(scope="module")
def table(spark, shared_table):
    made = shared_table(NUMBERS, index="x,y", cube_size=100, file_bytes="4kb").append(numbers(spark, 3000)).index()
    made.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{ENABLED}' = 'true')")
    return made


def test_a_scan_is_a_row_with_the_counts_of_its_query(spark, table):
    before = len(_rows(spark, table))
    low = table.data.agg(F.expr("percentile(x, 0.4)")).first()[0]
    kept = table.sql(f"SELECT * FROM {{t}} WHERE x < {low} AND id IN (1, 2, 3, 5, 7, 11, 13) OR x < {low} AND y > 1e9")
    row = _rows(spark, table)[-1]
    assert len(_rows(spark, table)) == before + 2
    files = [json.loads(add["stats"]) for add in table.replayed()[0].values()]
    assert {(f.column, f.operator, f.literal) for f in row.filters} >= {("x", "<", None), ("id", "OR IN", None)}
    assert (row.table_size.files, row.rows_kept) == (len(files), len(kept))
    steps = (
        row.skipped_by_partitions,
        row.skipped_by_statistics,
        row.skipped_by_limit,
        row.skipped_by_cubes,
        row.skipped_by_weights,
        row.skipped_by_joins,
        row.read,
    )
    for count in ("files", "bytes"):
        assert sum(step[count] for step in steps) == row.table_size[count]
    assert row.rows_read >= row.rows_kept
    assert row.selectivity == row.rows_kept / row.rows_read
    assert (row.session_kind, row.user_name) == ("batch", spark.sparkContext.sparkUser())
    assert (row.application_id, row.version) == (spark.sparkContext.applicationId, table.version)
    assert (row.sample_fraction, row.statement_id) == (None, None)
    assert row.duration_ms >= 0


def test_samples_literals_and_limits(spark, table, set_conf):
    set_conf("spark.qbeast.use.insights.literals", "true")
    query = table.data.sample(0.05).where("y >= 3")
    (planned,) = sql_ext.read_report(query).scans
    query.collect()
    table.sql("SELECT * FROM {t} LIMIT 1")
    sample, limit = _rows(spark, table)[-2:]
    assert sample.sample_fraction == pytest.approx(0.05, abs=1e-6)
    assert [(f.column, f.operator) for f in sample.filters] == [("y", ">=")]
    assert sample.filters[0].literal == "3"
    for step, count in planned.removed.items():
        assert tuple(sample[f"skipped_by_{step}"]) == (count.files, count.bytes), step
    assert sample.skipped_by_weights.files > 0
    assert tuple(sample.read) == (planned.kept_files, planned.kept_bytes)
    assert limit.skipped_by_limit.files > 0
    assert limit.filters == []


def test_spark_metrics_have_the_sums_of_the_records(spark, table):
    """The source ``use`` of the driver, read as a sink reads it; numbers of Python are in the same source."""
    first, before = len(_rows(spark, table)), _gauges(spark)
    table.data.sample(0.05).where("y >= 3").collect()
    table.sql("SELECT count(*) FROM {t} WHERE x < 2")
    rows, after = _rows(spark, table)[first:], _gauges(spark)
    # Reading the records is no recorded scan.
    added = {name: value - before.get(name, 0) for name, value in after.items()}
    assert added["recorded_scans_total"] == len(rows) == 2
    assert added["recorded_read_bytes_total"] == sum(row.read.bytes for row in rows)
    for step in ("partitions", "statistics", "limit", "cubes", "weights", "joins"):
        skipped = sum(row[f"skipped_by_{step}"].bytes for row in rows)
        assert added.get(f"recorded_skipped_bytes_total.{step}", 0) == skipped, step
    assert added["recorded_skipped_bytes_total.weights"] > 0
    assert added["recording_microseconds_total"] > 0
    exchanged = ApplicationMetrics(spark).exchange({"service_runs_total.failed": 41})
    assert exchanged == _gauges(spark)
    assert exchanged["service_runs_total.failed"] == 41
    ApplicationMetrics(spark).exchange({"service_runs_total.failed": 0})


def _gauges(spark):
    """The numbers of the source, by name."""
    env = spark._jvm.org.apache.spark.SparkEnv.get()
    sources = env.metricsSystem().getSourcesByName("use")
    assert sources.size() == 1
    gauges = sources.apply(0).metricRegistry().getGauges()
    return {name: gauges[name].getValue() for name in gauges}


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    ("where", "filters"),
    [
        ("x < 0.1 OR y < 10", {("x", "OR <"), ("y", "OR <")}),
        ("y > 3 AND (x < 0.1 OR NOT (y < 10))", {("y", ">"), ("x", "OR <"), ("y", "OR >=")}),
        ("upper(s) = 'S1' AND id + 1 > 5", {("s", "f() ="), ("id", "f() >")}),
        ("x > y", {("x", "f() >"), ("y", "f() >")}),
        ("x > (SELECT avg(x) FROM {t} WHERE y < 10)", {("x", ">")}),
        ("5 > y AND s LIKE 's1%'", {("y", "<"), ("s", "LIKE")}),
    ],
)
def test_operators_say_where_a_comparison_decides_nothing(spark, table, where, filters):
    """An index helps plain comparisons; functions and alternatives must not look like these."""
    table.sql(f"SELECT id FROM {{t}} WHERE {where.format(t=table.name)}")
    rows = {frozenset((f.column, f.operator) for f in row.filters if f.operator != "IS NOT NULL")
            for row in _rows(spark, table)[-2:]}  # fmt: skip
    assert frozenset(filters) in rows


@pytest.mark.slow
def test_the_steps_of_a_newcomer(spark, new_table, set_conf):
    """Deleted rows, views, joins, earlier versions, renamed columns, and recording turned off and on in one session."""
    properties = {ENABLED: "true", "delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    table = new_table(NUMBERS, properties=properties).append(numbers(spark, 400), 1)
    view = f"{table.name}_view"

    def recorded(text):
        before = len(_rows(spark, table))
        table.sql(text)
        return [
            ({(f.column, f.operator) for f in row.filters if f.operator != "IS NOT NULL"}, row.rows_kept, row.version)
            for row in _rows(spark, table)[before:]
        ]

    table.sql("DELETE FROM {t} WHERE id % 10 = 0")
    kept = table.data.where("x < 0.5").count()
    ((filters, rows_kept, _),) = recorded("SELECT * FROM {t} WHERE x < 0.5")
    assert (filters, rows_kept) == ({("x", "<")}, kept), "Delta's filter of deleted rows is no filter of the query"
    table.sql(f"CREATE VIEW {view} AS SELECT * FROM {{t}} WHERE y > 500")
    ((filters, _, _),) = recorded(f"SELECT sum(x) FROM {view} WHERE x < 0.5")
    assert filters == {("x", "<"), ("y", ">")}
    table.sql(f"DROP VIEW {view}")
    joined = recorded("SELECT count(*) FROM {t} a JOIN {t} b ON a.id = b.id WHERE a.x < 0.1 AND b.y > 900")
    assert sorted(map(sorted, (filters for filters, _, _ in joined))) == [[("x", "<")], [("y", ">")]]
    assert recorded("SELECT * FROM {t} VERSION AS OF 0") == [(set(), 0, 0)]
    assert recorded("SELECT * FROM {t} WHERE x < -1")[0][:2] == ({("x", "<")}, 0)
    assert sql_ext.call(spark, "recommend", table=table.name).collect()[0].advice == "NO_INDEX"
    for value, count in (("false", 0), ("true", 1)):
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{ENABLED}' = '{value}')")
        assert len(recorded("SELECT * FROM {t} WHERE x < 0.2")) == count
    for value, count in (("FALSE", 0), (" True ", 1)):
        set_conf("spark.qbeast.use.insights.recording", value)
        assert len(recorded("SELECT * FROM {t} WHERE x < 0.2")) == count
    table.sql("ALTER TABLE {t} RENAME COLUMN y TO `why not.so`")
    assert recorded("SELECT * FROM {t} WHERE `why not.so` < 10")[0][0] == {("why not.so", "<")}
    # A table that is made again has no records of the one before.
    table.sql("DROP TABLE {t}")
    table.sql(f"CREATE TABLE {{t}} (x DOUBLE) USING delta TBLPROPERTIES ('{ENABLED}' = 'true')")
    assert _rows(spark, table) == []
    assert recorded("SELECT * FROM {t} WHERE x < 1") == [({("x", "<")}, 0, 0)]
    with pytest.raises(sql_ext.UseError, match="empty"):
        sql_ext.call(spark, "recommend", table=table.name)


def test_a_scan_of_an_empty_version(spark, new_table):
    """It has no bytes, of which there is no share."""
    table = new_table(NUMBERS, properties={ENABLED: "true"}).append(numbers(spark, 40), 1)
    table.sql("SELECT * FROM {t} VERSION AS OF 0")
    (scan,) = _rows(spark, table)
    assert (scan.version, scan.rows_kept, scan.filters) == (0, 0, [])
    assert sql_ext.call(spark, "recommend", table=table.name).collect()


@pytest.mark.slow
def test_what_is_not_recorded(spark, table, new_table, set_conf):
    before = len(_rows(spark, table))
    table.append(numbers(spark, 100, start=9000))
    table.optimize(max_iterations=1)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        table.sql("SELECT sum(1 / (id - id)) FROM {t}")
    set_conf("spark.qbeast.use.insights.recording", "false")
    table.data.count()
    other = new_table(NUMBERS, index="x,y").append(numbers(spark, 10))
    other.data.collect()
    assert len(_rows(spark, table)) == before
    assert other.managed.list_state(CONSUMPTION_FOLDER) == []


def test_all_tables(spark, table):
    table.data.where("x > 5").collect()
    expected = len(_rows(spark, table))
    rows = spark.sql("SELECT `table`, count(*) AS n, count(error) AS e FROM use_catalog.system_lake_tables.consumption "
                     f"WHERE `table` LIKE '%{table.name}' GROUP BY 1").collect()  # fmt: skip
    assert [(row.n, row.e) for row in rows] == [(expected, 0)]


# ---------------------------------------------------------------------------------------------------- without Spark


def _lines(*times, app="a"):
    return "\n".join(
        json.dumps(
            {"table_id": "t", "application_id": app, "execution_id": time, "scan": 0, "finished_at": time // 10 * 10}
        )
        for time in times
    )


@pytest.fixture
def stored(monkeypatch):
    monkeypatch.setattr(ManagedTable, "snapshot", lambda _: SimpleNamespace(settings={}))
    return memory_table({})


def _executions(table):
    texts = [table.read_state(f"{CONSUMPTION_FOLDER}/{name}") for name in table.list_state(CONSUMPTION_FOLDER)]
    return sorted({json.loads(line)["execution_id"] for text in texts for line in text.split("\n") if "scan" in line})


def test_files_are_merged_and_no_row_is_lost(stored, monkeypatch):
    monkeypatch.setattr(consumption, "MOST_FILES", 3)
    for time in range(1, 9):
        add_scans(stored, _lines(time * 10, time * 10 + 1), now=100 + time * GRACE_MILLIS)
    assert _executions(stored) == [time * 10 + i for time in range(1, 9) for i in (0, 1)]
    assert len(stored.list_state(CONSUMPTION_FOLDER)) <= 2 * 4


def test_old_files_and_many_rows_are_deleted(stored):
    for time in (1, 2, 3):
        add_scans(stored, _lines(time * DAY, time * DAY + 1), now=3 * DAY)
    assert trim_scans(stored, ScanRetention(2 * DAY, 100), 3 * DAY) == 0
    assert trim_scans(stored, ScanRetention(2 * DAY, 100), 4 * DAY) == 1
    assert trim_scans(stored, ScanRetention(2 * DAY, 3), 4 * DAY) == 0
    assert trim_scans(stored, ScanRetention(2 * DAY, 2), 4 * DAY) == 1
    assert _executions(stored) == [3 * DAY, 3 * DAY + 1]


@pytest.mark.parametrize("rows", [1, 4])
def test_files_and_rows_stay_few_if_many_are_written_while_merged_files_wait(stored, monkeypatch, rows):
    monkeypatch.setattr(consumption, "MOST_FILES", 10)
    settings = {"use.insights.consumption.rows": "20"}
    monkeypatch.setattr(ManagedTable, "snapshot", lambda _: SimpleNamespace(settings=settings))
    counts, times = [], []
    for number in range(1, 400):
        times += [number * 10 + row for row in range(rows)]
        add_scans(stored, _lines(*times[-rows:]), now=number * GRACE_MILLIS // 40)
        assert _executions(stored)[-20:] == times[-20:]
        counts.append(len(stored.list_state(CONSUMPTION_FOLDER)))
    assert max(counts[200:]) <= max(counts[:200])


def test_a_merged_file_is_deleted_with_its_parts(stored, monkeypatch):
    monkeypatch.setattr(consumption, "MOST_FILES", 3)
    for time in range(1, 5):
        add_scans(stored, _lines(time * 10), now=time)
    add_scans(stored, _lines(100), now=5)
    assert trim_scans(stored, ScanRetention(DAY, 1), 6) == 6  # the merged file, the list of its parts, and four parts
    assert (len(stored.list_state(CONSUMPTION_FOLDER)), _executions(stored)) == (1, [100])


def test_a_list_of_parts_that_names_its_own_file_ends(stored):
    add_scans(stored, _lines(10), now=10)
    (name,) = stored.list_state(CONSUMPTION_FOLDER)
    parts = json.dumps({"merged_at": 10, "parts": [name, "../../t.json"]})
    stored.write_state(f"{CONSUMPTION_FOLDER}/{name.removesuffix('.json')}.parts", parts)
    assert consumption._folder(stored, 1).delete([name], 20) == 2
    assert stored.list_state(CONSUMPTION_FOLDER) == []


def test_lines_that_are_no_records_are_refused(stored):
    for text in ("", "{}", _lines(1) + "\n[]", _lines(1).replace('"scan": 0', '"scan": -1')):
        with pytest.raises(InvalidArgumentError):
            add_scans(stored, text, 0)
    assert stored.list_state(CONSUMPTION_FOLDER) == []


def test_what_the_properties_mean():
    policy = insights_policy({ENABLED: "true", "use.insights.consumption.rows": "7"})
    assert (policy.keep_commits_millis, policy.scans) == (None, ScanRetention(30 * DAY, 7))
    for key in ("use.insights.consumption.rows", "use.insights.consumption.days"):
        with pytest.raises(InvalidArgumentError, match=key):
            insights_policy({key: "0"})
