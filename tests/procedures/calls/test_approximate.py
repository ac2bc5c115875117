"""``use.approximate``: estimates against samples and exact answers that Spark computes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from spark_jobs import at_most, jobs_started

import sql_ext
from catalog.errors import ToleranceNotMetError
from catalog.jvm import session
from catalog.settings.session_settings import APPROXIMATE_BYTES
from procedures.insight.approximation import answer


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """60,000 rows in two revisions, some unindexed, some deleted, with renamed columns, nulls and duplicates."""
    made = shared_table(
        "id BIGINT, k BIGINT, v DOUBLE, d DECIMAL(20,4), big DOUBLE, city STRING, n INT",
        index="id",
        cube_size=2_000,
        properties={"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    )

    def rows(start, count):
        return spark.range(start, start + count, 1, 2).selectExpr(
            "id", "id DIV 2 AS k", "rand(1) * 100 + 20 AS v", "CAST(exp(randn(3)) AS DECIMAL(20,4)) AS d",
            "1e9 + randn(5) AS big", "concat('c', id % 4) AS city", "IF(id % 10 = 0, NULL, CAST(id % 7 AS INT)) AS n",
        )  # fmt: skip

    made.append(rows(0, 20_000)).index()
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='k,v')")
    made.append(rows(20_000, 35_000)).index()
    made.append(rows(55_000, 5_000))
    made.sql("ALTER TABLE {t} RENAME COLUMN v TO `the value`")
    made.sql("DELETE FROM {t} WHERE id BETWEEN 1000 AND 1400")
    return made


@pytest.fixture(scope="module")
def cities(spark, table):
    name = f"{table.name}_cities"
    spark.sql(f"CREATE TABLE {name} USING delta AS SELECT concat('c', id) AS city, id AS zone FROM range(3)")
    yield name
    spark.sql(f"DROP TABLE {name}")


def approximate(spark, query, **arguments):
    return sql_ext.call(spark, "approximate", query=query, **arguments).collect()


def by_group(rows):
    return {(tuple(row.keys.values()), row.aggregate): row for row in rows if row.aggregate is not None}


def check_against_exact(spark, query, rows, keys=0):
    """Each interval contains the exact answer, which it does with this data; no group is invented or lost."""
    found, count = by_group(rows), 0
    for group in spark.sql(query).collect():
        key = tuple(str(value) for value in group[:keys])
        for name, value in zip(group.__fields__[keys:], group[keys:], strict=True):
            row = found[(key, name)]
            assert row.lower <= float(value) <= row.upper, (row, value)
            assert row.met == (row.reason is None)
            count += 1
    assert count == len(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT avg(`the value`) a, count(*) c, sum(n) s, sum(d)/count(n) r FROM {t}", 0),
        (
            "SELECT city, count_if(n > 2) i, stddev(big) s, avg(n) FILTER (WHERE id > 9) FROM {t} "  # noqa: ISC004
            "GROUP BY city HAVING city > 'c1'",
            1,
        ),
        ("SELECT median(d) m, percentile_approx(`the value`, 0.9) p FROM {t} WHERE id < 50000", 0),
        ("SELECT 2 * a - 1 AS x FROM (SELECT avg(`the value`) a, max(city) FROM {t})", 0),
        ("WITH w AS (SELECT k + 1 AS k1, n FROM {t} WHERE id % 3 = 0) SELECT sum(k1 * n) s FROM w", 0),
        ("SELECT zone, sum(`the value`) s FROM {t} JOIN {c} USING (city) GROUP BY zone", 1),
        ("SELECT count(zone) z FROM {t} LEFT JOIN {c} USING (city) WHERE id IN (SELECT zone FROM {c}) OR id > 9", 0),
    ],
)
def test_intervals_contain_the_exact_answer(spark, table, cities, query, keys):
    query = query.format(t=table.name, c=cities)
    rows = approximate(spark, query, tolerance=0.15, on_miss="estimate")
    assert {row.method for row in rows if row.aggregate is not None} <= {"normal", "bounded"}
    assert all(row.fraction <= 0.5 for row in rows)
    assert [row.reason for row in rows if row.aggregate is None] == ["GROUPS_MAY_BE_MISSING"] * (keys > 0)
    check_against_exact(spark, query, rows, keys)


@pytest.mark.slow
def test_estimates_are_those_of_the_sample(spark, table):
    """The steps together have the rows of one sample, which Spark takes by itself; a DataFrame gives the same rows."""
    query = f"SELECT avg(`the value`) a, count(*) c, stddev(n) s FROM {table.name} WHERE id > 5000"
    rows = approximate(spark, query, tolerance=0.1, on_miss="estimate", max_fraction=0.2)
    fraction = rows[0].fraction
    sample = table.data.where("id > 5000").sample(fraction)
    (expected,) = sample.agg(F.avg("the value"), F.count("*") / fraction, F.stddev("n"), F.count("*")).collect()
    assert [row.estimate for row in rows] == pytest.approx(list(expected)[:3], rel=1e-3)
    assert {row.rows for row in rows} == {expected[3]}
    assert all(row.met for row in rows)
    again = sql_ext.tolerance(spark.sql(query), 0.1, on_miss="estimate", max_fraction=0.2)
    assert [tuple(vars(row).values()) for row in again] == [tuple(row) for row in rows]
    (less, *_) = sql_ext.tolerance(query, 0.1, confidence=0.5, per_group=True, on_miss="estimate")
    assert less.fraction < fraction


@pytest.mark.slow
def test_all_steps_read_one_version(spark, new_table, monkeypatch):
    table = new_table("id BIGINT, v DOUBLE", index="id", cube_size=500)
    table.append(spark.range(20_000).selectExpr("id", "rand(7) AS v")).index()
    following = answer.next_fraction

    def append_first(upper, needed, most):
        table.append(spark.range(5_000).selectExpr("id + 50000 AS id", "100.0D AS v"))
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='v')")
        return following(upper, needed, most)

    monkeypatch.setattr(answer, "next_fraction", append_first)
    rows = approximate(spark, f"SELECT avg(v) a, count(*) c FROM {table.name}", tolerance=0.05, on_miss="estimate")
    assert table.version > 3
    assert (rows[0].upper < 1, rows[1].upper < 25_000) == (True, True)
    exact = approximate(spark, f"SELECT max(v) a, count(*) c FROM {table.name} VERSION AS OF 2")
    assert [row.value for row in exact[1:]] == ["20000"]


@pytest.mark.slow
def test_what_is_not_reached(spark, table):
    rare = f"SELECT avg(`the value`) a FROM {table.name} WHERE id = 40000"
    (row,) = approximate(spark, rare)
    assert (row.method, row.fraction, row.met, row.lower == row.upper == row.estimate) == ("exact", 1.0, True, True)
    assert "does not reach the tolerance" in row.message
    (row,) = approximate(spark, rare, on_miss="estimate", max_fraction=0.01)
    assert (row.estimate, row.met, row.reason, row.fraction) == (None, False, "OUTSIDE_TOLERANCE", 0.01)
    with pytest.raises(ToleranceNotMetError, match="does not reach the tolerance for a: increase"):
        approximate(spark, rare, on_miss="error", max_fraction=0.01)
    (row,) = approximate(spark, f"SELECT avg(`the value`) a FROM {table.name}", dry_run=True, tolerance=0.02)
    assert (row.fraction, row.fraction < row.expected_fraction < 1) == (0.001, True)
    extreme = f"SELECT max(city) m, count(DISTINCT n) d, avg(`the value`) a FROM {table.name}"
    rows = approximate(spark, extreme)
    assert [row.value for row in rows][:2] == ["c3", "7"]
    assert [row.estimate is None for row in rows] == [True, False, False]
    rows = approximate(spark, extreme, on_miss="estimate")
    assert [(row.aggregate, row.reason) for row in rows] == [("a", None), ("m", "NO_INTERVAL"), ("d", "NO_INTERVAL")]
    with pytest.raises(ToleranceNotMetError, match="m, d has no interval"):
        approximate(spark, extreme, on_miss="error")


@pytest.mark.slow
def test_a_small_table_is_answered_exactly(spark, table, set_conf):
    """The answer takes the Spark jobs of the query, and no other."""
    set_conf(APPROXIMATE_BYTES.name, APPROXIMATE_BYTES.default)
    query = f"SELECT city, avg(`the value`) a, count(*) c FROM {table.name} WHERE id > 100 GROUP BY city"
    spark.sql(query).collect()
    before = jobs_started(spark)
    expected = spark.sql(query).collect()
    own_jobs = jobs_started(spark) - before
    with at_most(spark, own_jobs):
        rows = sql_ext.tolerance(query)
    found = by_group(rows)
    assert {(key, row.a) for key, row in ((tuple(row[:1]), row) for row in expected)} == {
        (key, row.estimate) for (key, name), row in found.items() if name == "a"
    }
    assert {(row.method, row.fraction, row.met, row.reason) for row in rows} == {("exact", 1.0, True, None)}
    assert {row.bytes_read for row in rows} == {rows[0].exact_bytes}
    assert all("samples are not expected to be faster (spark.qbeast.use" in row.message for row in rows)
    (estimate,) = sql_ext.tolerance(f"SELECT count(*) c FROM {table.name}", 0.3, on_miss="estimate")
    assert estimate.method != "exact"
    # A thread that has not made the session has none as its active one.
    with ThreadPoolExecutor(1) as thread:
        (first,) = thread.submit(sql_ext.tolerance, f"SELECT count(*) c FROM {table.name}", dry_run=True).result()
    assert first.fraction == answer.FIRST_FRACTION


@pytest.mark.slow
def test_a_large_look_has_the_settings_of_the_user(spark, table, set_conf, monkeypatch):
    """Only a look at little is shuffled into few partitions without adaptive execution."""
    set_conf("spark.sql.adaptive.enabled", "true")
    query = f"SELECT avg(`the value`) a FROM {table.name}"
    (first,) = sql_ext.tolerance(query, dry_run=True)
    monkeypatch.setattr(session, "_LITTLE_BYTES", first.exact_bytes // 100)
    looks, sums = [], answer.sample_sums

    def observed(rows, *arguments):
        looks.append(rows.sparkSession.conf.get("spark.sql.adaptive.enabled"))
        return sums(rows, *arguments)

    monkeypatch.setattr(answer, "sample_sums", observed)
    (row,) = sql_ext.tolerance(query, 0.02, on_miss="estimate")
    assert (looks[0], looks[-1], row.reason) == ("false", "true", None)


@pytest.mark.slow
def test_the_rows_of_a_look_serve_no_other_session(spark, table, monkeypatch):
    """Functions of the session are the same in the plans of all sessions."""
    other, sums, found = spark.newSession(), answer.sample_sums, []
    spark.sql("CREATE DATABASE other_of_tests")
    other.sql("USE other_of_tests")
    query = f"SELECT count(*) c FROM {table.name} WHERE current_schema() = 'default'"

    def observed(rows, *arguments):
        made = sums(rows, *arguments)
        found.append(made.rows.sum())
        if len(found) == 1:
            approximate(other, query, on_miss="estimate", max_fraction=0.01)
        return made

    monkeypatch.setattr(answer, "sample_sums", observed)
    approximate(spark, query, on_miss="estimate", max_fraction=0.01)
    spark.sql("DROP DATABASE other_of_tests")
    assert (found[0] > 0, found[1]) == (True, 0)


@pytest.mark.slow
def test_types_that_are_not_numbers(spark, table):
    query = (
        "SELECT avg(make_dt_interval(0, 0, 0, id)) i, CAST(avg(n) / 9 AS DECIMAL(9,0)) r, max(DATE'2020-01-01') d, "
        f"percentile(id, 0.5) p, percentile(id, 0.5, 2) f, CAST(count(*) AS DECIMAL(20,1)) c FROM {table.name}"
    )
    rows = approximate(spark, query, tolerance=0.2, on_miss="estimate")
    assert {row.aggregate: row.method for row in rows} == {
        "p": "normal", "c": "normal", "i": None, "r": None, "d": None, "f": None,
    }  # fmt: skip
    exact = {row.aggregate: (row.estimate is None, row.value is None) for row in approximate(spark, query)}
    assert exact == {"i": (True, False), "d": (True, False), **dict.fromkeys("rpfc", (False, False))}


def test_a_constant_beside_an_aggregate_without_interval(spark, table):
    """No sum is needed, so that no sample is read."""
    query = f"SELECT city, 1 AS one, max(city) AS most FROM {table.name} GROUP BY city"
    (row,) = approximate(spark, query, on_miss="estimate")
    assert (row.aggregate, row.reason, row.bytes_read) == ("most", "NO_INTERVAL", 0)


@pytest.mark.quick_sample(8)
@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("SELECT id FROM {t}", "A query without an aggregate"),
        ("SELECT city FROM {t} GROUP BY city", "A query without an aggregate"),
        ("SELECT city, 1 + 2 FROM {t} GROUP BY city", "A query without an aggregate"),
        ("SELECT count(*) OVER () FROM {t}", "Window"),
        ("SELECT avg(id) FROM {t} LIMIT 1", "LIMIT"),
        ("SELECT city, count(*) FROM {t} GROUP BY ROLLUP(city)", "ROLLUP"),
        ("SELECT city, count(*) FROM {t} GROUP BY city HAVING count(*) > 2", "HAVING may compare keys only"),
        ("SELECT avg(x) FROM (SELECT city, sum(id) x FROM {t} GROUP BY city)", "Aggregate below the aggregation"),
        ("SELECT avg(id) FROM {t} TABLESAMPLE (10 PERCENT)", "Sample below the aggregation"),
        ("SELECT avg(a.id) FROM {t} a JOIN {t} b USING (id)", "several indexed tables"),
        ("SELECT avg(id) FROM {t} WHERE id IN (SELECT id FROM {t})", "A subquery over an indexed table"),
        ("SELECT avg(id) FROM {t} WHERE rand() < 0.5", "not deterministic"),
        ("SELECT avg(id) FROM {t} WHERE hash(k, `the value`) < 0", "Use xxhash64"),
        ("SELECT count(zone) FROM {c} LEFT JOIN {t} USING (city)", "LEFT OUTER JOIN"),
        ("SELECT _metadata.file_name, count(*) FROM {t} GROUP BY 1", "_metadata"),
        ("SELECT avg(id) FROM {t} WHERE _metadata.file_size > 0", "_metadata"),
        ("SELECT city COLLATE UTF8_LCASE c, count(*) FROM {t} GROUP BY 1", "COLLATE"),
        ("SELECT id % 2 k, n k, count(*) FROM {t} GROUP BY id % 2, n", "with 2 columns named k"),
        ("SELECT sum(id) v, avg(id) v FROM {t}", "with 2 columns named v"),
        ("SELECT count(*) FROM {c}", "tables without indexed files"),
        ("SELECT count(*) FROM range(9)", "no Delta table"),
    ],
)
def test_queries_that_have_no_estimate(spark, table, cities, query, part):
    query = query.format(t=table.name, c=cities).replace("'", "\\'")
    with pytest.raises(AnalysisException) as refused:
        spark.sql(f"CALL use.approximate('{query}')")
    assert refused.value.getCondition() == "USE_NOT_SUPPORTED"
    assert part in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"tolerance": 0.0}, "tolerance = '0' is not accepted"),
        ({"tolerance": 2.0}, "absolute => true"),
        ({"tolerance": float("nan")}, "tolerance = 'nan'"),
        ({"confidence": 1.0}, "confidence = 1.0 is not accepted: a number from 0.5 to 0.999999"),
        ({"max_fraction": 0.0}, "max_fraction = '0'"),
        ({"on_miss": "exakt"}, "one of exact, error, estimate"),
        ({"query": "SELEC 1"}, "cannot be parsed"),
        ({"query": "DROP TABLE a"}, "this is the command DropTable"),
    ],
)
def test_bad_arguments(spark, arguments, text):
    with pytest.raises(sql_ext.UseError, match=text):
        approximate(spark, **{"query": "SELECT count(*) FROM nowhere", **arguments})


@pytest.mark.slow
def test_a_path_with_a_backquote(spark, tmp_path):
    path = f"{tmp_path}/a`b"
    spark.range(3000).selectExpr("id", "id % 100 AS v").coalesce(1).write.format("delta").save(path)
    maintenance = sql_ext.table(spark, path).maintenance
    maintenance.index("id", target_file_bytes=5000)
    maintenance.optimize()
    name = "delta.`{}`".format(path.replace("`", "``"))
    (row,) = approximate(spark, f"SELECT avg(v) AS m FROM {name}", tolerance=0.5)
    assert row.lower <= 49.5 <= row.upper


@pytest.mark.slow
def test_draws_are_disjoint_and_complete(spark, table):
    draws = [sql_ext.sample(table.data, 0.25, draw=number) for number in (1, 2, 3, 4)]
    counts = [draw.count() for draw in draws]
    rows = table.data.count()
    assert sum(counts) == rows
    assert all(0.2 * rows < count < 0.3 * rows for count in counts)
    assert draws[0].unionAll(draws[1]).unionAll(draws[2]).unionAll(draws[3]).distinct().count() == rows
    assert draws[0].exceptAll(table.data.sample(0.25)).isEmpty()
    assert sql_ext.read_report(draws[3]).spark_samples == ()
    for fraction, draw, text in (
        (0.25, 5, "from 1 to 4"),
        (0.25, 0, "from 1 to 4"),
        (0.0, 1, "above 0, up to 1"),
        (float("nan"), 1, "fraction"),
        (0.3, 4, "from 1 to 3"),
        (0.5, 1.5, "a whole"),
    ):
        with pytest.raises(sql_ext.UseError, match=text):
            sql_ext.sample(table.data, fraction, draw=draw)
    with pytest.raises(sql_ext.UseError, match="Spark would take this sample itself"):
        sql_ext.sample(spark.range(10), 0.5, draw=2)


def test_one_row_per_group(spark, table):
    query = f"SELECT city, count(*) AS n, avg(big) AS mean FROM {table.name} GROUP BY city"
    named = spark.sql(query).tolerance(0.2, on_miss="estimate", max_fraction=0.2)
    called = sql_ext.call(spark, "approximate", query=query, tolerance=0.2, max_fraction=0.2, by_group=True)
    for rows in (named, called):
        assert rows.columns == [
            "city",
            "n",
            "n_lower",
            "n_upper",
            "mean",
            "mean_lower",
            "mean_upper",
            "met",
            "fraction",
        ]
        assert rows.schema["city"].dataType == spark.sql(query).schema["city"].dataType
        assert all(row.n_lower <= row.n <= row.n_upper for row in rows.collect())
    assert {row.city for row in called.collect()} == {row.city for row in spark.sql(query).collect()}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{"max_fraction": 0.001}, {"dry_run": True}])
def test_hours_of_one_text_are_two_groups(spark, table, set_conf, arguments):
    set_conf("spark.sql.session.timeZone", "Europe/Berlin")
    # Its patterns of times are fewer.
    set_conf("spark.sql.legacy.timeParserPolicy", "LEGACY")
    hour = "TIMESTAMP'2026-10-25T00:00:00Z' + make_dt_interval(0, id % 2)"
    query = f"SELECT {hour} AS h, count(*) AS n FROM {table.name} GROUP BY 1"
    assert [row["keys"]["h"] for row in approximate(spark, query, **arguments) if row["keys"]] == [
        "2026-10-25 02:00:00", "2026-10-25 02:00:00+01:00",
    ]  # fmt: skip
    found = sql_ext.call(spark, "approximate", query=query, by_group=True, **arguments)
    assert [row.s for row in found.selectExpr("unix_seconds(h) % 86400 AS s").collect()] == [0, 3600]


def test_groups_whose_keys_are_no_columns_of_the_query(spark, table):
    query = f"SELECT count(*) AS n FROM {table.name} GROUP BY city"
    found = sql_ext.call(spark, "approximate", query=query, by_group=True, dry_run=True).collect()
    assert len([row for row in found if row.n_lower <= 14_900 <= row.n_upper]) == 4


def test_nulls_in_different_keys_are_different_groups(spark, table):
    query = f"SELECT nullif(id % 2, 0) AS a, nullif(1 - id % 2, 0) AS b, count(*) AS n FROM {table.name} GROUP BY 1, 2"
    rows = approximate(spark, query, dry_run=True)
    assert [row["keys"] for row in rows if row["keys"]] == [{"a": None, "b": "1"}, {"a": "1", "b": None}]
