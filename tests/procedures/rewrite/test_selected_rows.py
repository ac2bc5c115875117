"""Tables whose rows were selected by their weights, as by a sample or split of a table with the same index."""

import pytest
from tables import NUMBERS, numbers

import sql_ext
from catalog.errors import NotSupportedError
from sql_ext import SampleReason, read_report


@pytest.fixture(scope="module")
def whole(spark, shared_table):
    return shared_table(NUMBERS, index="id").append(numbers(spark, 4000)).index()


@pytest.fixture(scope="module")
def tenth(whole, shared_table):
    return shared_table(NUMBERS, index="id").append(whole.data.sample(0.1)).index()


def reasons(table):
    return [sample.reason for sample in read_report(table.data.sample(0.1)).spark_samples]


def test_samples_and_splits_of_a_stored_sample(tenth):
    assert reasons(tenth) == [SampleReason.WEIGHTS_WITH_GAPS]
    rows = tenth.data.count()
    assert 350 < rows < 450
    parts = [part.count() for part in tenth.data.randomSplit([0.5, 0.5], seed=1)]
    assert sum(parts) == rows
    assert min(parts) > 0.3 * rows


def test_no_answer_within_a_tolerance(spark, tenth):
    with pytest.raises(NotSupportedError, match="selected by a sample or split"):
        sql_ext.call(spark, "approximate", query=f"SELECT count(*) FROM {tenth.name} WHERE y > 1").collect()


def test_an_indexed_write_of_a_split(spark, whole, new_table):
    """The rows are indexed while they are written."""
    table = new_table(NUMBERS)
    whole.data.randomSplit([0.8, 0.2])[1].write.format("qbeast").mode("append").option(
        "columnsToIndex", "id"
    ).saveAsTable(table.name)
    assert reasons(table) == [SampleReason.WEIGHTS_WITH_GAPS]


@pytest.mark.slow
def test_later_revisions(spark, whole, new_table):
    """Rows with all weights do not hide the gaps of the others; weights of other columns have none."""
    table = new_table(NUMBERS, index="id").append(whole.data.sample(0.1)).index()
    table.append(numbers(spark, 5000, 6000)).index()
    assert len(table.managed.snapshot().revisions) == 3
    assert reasons(table) == [SampleReason.WEIGHTS_WITH_GAPS]
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'x')")
    table.optimize(revision_rewrite=True)
    assert reasons(table) == []
    # Back again, from files whose rows were placed by weights of another column.
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'id')")
    table.optimize(revision_rewrite=True)
    assert reasons(table) == [SampleReason.WEIGHTS_WITH_GAPS]


@pytest.mark.slow
def test_bands_are_no_selection(whole, new_table, spark):
    """A file has the rows of a band of weights; a new revision that is made for them has no gaps for that."""
    table = new_table(NUMBERS, index="id", cube_size=100, file_bytes="8kb").append(numbers(spark, 3000)).index()
    smallest = min(table.files, key=lambda file: file.size).path
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.cubeSize' = '200')")
    table.optimize(strategy="FileList", files=[smallest])
    table.optimize(revision_rewrite=True, bytes_per_iter=1, max_iterations=1)
    assert reasons(table) == []


@pytest.mark.slow
def test_rows_that_leave_a_revision_are_no_selection(new_table, spark, set_conf):
    """The rows of a few files need a new revision; the one before was measured by all rows."""
    table = new_table(NUMBERS, index="id,x", cube_size=100, file_bytes="8kb").append(numbers(spark, 3000)).index()
    set_conf("spark.qbeast.use.statements.enabled", "false")
    table.sql("UPDATE {t} SET x = 1000.0 WHERE id = 5")
    table.optimize()
    assert len(table.managed.snapshot().revisions) == 3
    assert reasons(table) == []


@pytest.mark.slow
def test_gaps_stay_without_the_revision_that_shows_them(spark, whole, new_table):
    table = new_table(NUMBERS, index="id", cube_size=1000).append(whole.data.sample(0.1)).index()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.cubeSize' = '200')")
    table.optimize(revision_rewrite=True)
    sql_ext.call(spark, "consolidate_log", table=table.name, modes=["table_metadata"]).collect()
    assert len(table.managed.snapshot().revisions) == 2
    assert reasons(table) == [SampleReason.WEIGHTS_WITH_GAPS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {t} t JOIN {c} c ON t.id = c.id",
        "SELECT count(*) FROM {t} WHERE id IN (SELECT id FROM {c} c WHERE c.id >= 0)",
        "SELECT count(*) FROM (SELECT id + 0 AS n, id AS m FROM {t}) JOIN (SELECT DISTINCT id AS k FROM {c}) ON k = m",
        "SELECT count(*) FROM {t} t LEFT ANTI JOIN {c} USING (id)",
        "SELECT count(*) FROM {t} t, {c} c WHERE t.id = c.id",
        "SELECT sum(y) FROM {t} WHERE y > 0 AND id IN (SELECT try_cast(id AS INT) FROM {c})",
        "SELECT count(*) FROM (SELECT c.id AS k, t.id AS m FROM {t} t CROSS JOIN {c} c) WHERE k = m",
        "SELECT count(*) FILTER (WHERE id IN (SELECT id FROM {c})) FROM {t}",
        "SELECT sum(CASE WHEN id IN (SELECT id FROM {c}) THEN 1 ELSE 0 END) FROM {t}",
        "SELECT id IN (SELECT id FROM {c}) AS found, count(*) FROM {t} GROUP BY found",
    ],
)
def test_no_answer_for_the_keys_of_a_sample(spark, whole, cohorts, query):
    sample, range_of_ids = cohorts
    with pytest.raises(NotSupportedError, match="that a sample or split has selected"):
        sql_ext.call(spark, "approximate", query=query.format(t=whole.name, c=sample)).collect()
    sql_ext.call(spark, "approximate", query=query.format(t=whole.name, c=range_of_ids)).collect()


# The weights of the keys {k} are not known.
WITHOUT_WEIGHTS = [
    "SELECT count(*) FROM {t} t WHERE EXISTS (SELECT 1 FROM {c} c WHERE c.{k} = t.{i})",
    "SELECT count(*) FROM {t} t WHERE NOT EXISTS (SELECT 1 FROM {c} c WHERE c.{k} + 1 = t.{i} + 1)",
    "SELECT count(*) FILTER (WHERE {i} IN (SELECT {k} FROM {c} c WHERE c.id > t.x)) FROM {t} t",
    "SELECT count(*) FROM (SELECT {i} + 1 AS k FROM {t}) t JOIN (SELECT {k} + 1 AS k FROM {c}) c ON t.k = c.k",
    "SELECT count(*) FROM {t} t WHERE (SELECT count(*) FROM {c} c WHERE c.{k} = t.{i}) > 0",
    "SELECT count(*) FROM {t} t, {c} c WHERE CAST(c.{k} AS STRING) = concat(t.{i}, '')",
    "SELECT count(*) FROM {t} t WHERE {i} + 1 IN (SELECT {k} + 1 FROM {c})",
]


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize("query", WITHOUT_WEIGHTS)
def test_no_answer_for_keys_without_known_weights(spark, whole, cohorts, query):
    with pytest.raises(NotSupportedError, match="or may have selected"):
        approximate(spark, query.format(t=whole.name, c=cohorts[1], k="id", i="id"))


@pytest.mark.slow
@pytest.mark.parametrize("query", WITHOUT_WEIGHTS)
def test_such_keys_of_other_columns_or_of_local_rows(spark, whole, cohorts, query):
    approximate(spark, query.format(t=whole.name, c=cohorts[1], k="id", i="y"))
    approximate(spark, query.format(t=whole.name, c="range(200)", k="id", i="id"))


@pytest.mark.slow
def test_comparisons_with_constants_select_nothing_by_a_sample(spark, whole, cohorts):
    approximate(spark, f"SELECT count(*) FROM {whole.name} t, {cohorts[0]} c WHERE t.id % 10 = 3 AND t.y = c.id")
    approximate(spark, f"SELECT count(*) FROM {whole.name} t JOIN {cohorts[0]} c ON t.id = 7 AND t.y = c.id")


def approximate(spark, query):
    return sql_ext.call(spark, "approximate", query=query).collect()


@pytest.fixture(scope="module")
def cohorts(spark, whole):
    """Tables of ids: those of a sample, and others."""
    sample, range_of_ids = f"{whole.name}_sample", f"{whole.name}_range"
    for name, rows in ((sample, "TABLESAMPLE (10 PERCENT)"), (range_of_ids, "WHERE id < 400")):
        ids = f"SELECT CAST(id AS DECIMAL(20, 0)) AS id FROM {whole.name} {rows}"
        # Besides, a value that is none of the column, and one that matches nothing.
        spark.sql(f"CREATE TABLE {name} USING parquet AS {ids} UNION ALL VALUES (10000000000000000000), (NULL)")
    yield sample, range_of_ids
    for name in (sample, range_of_ids):
        spark.sql(f"DROP TABLE {name}")
