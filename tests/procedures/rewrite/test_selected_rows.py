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


def test_bands_are_no_selection(whole, new_table, spark):
    """A file has the rows of a band of weights; a new revision that is made for them has no gaps for that."""
    table = new_table(NUMBERS, index="id", cube_size=100, file_bytes="8kb").append(numbers(spark, 3000)).index()
    smallest = min(table.files, key=lambda file: file.size).path
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.cubeSize' = '200')")
    table.optimize(strategy="FileList", files=[smallest])
    table.optimize(revision_rewrite=True, bytes_per_iter=1, max_iterations=1)
    assert reasons(table) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {t} t JOIN {c} c ON t.id = c.id",
        "SELECT count(*) FROM (SELECT id + 0 AS n, id AS m FROM {t}) JOIN (SELECT DISTINCT id AS k FROM {c}) ON k = m",
        "SELECT count(*) FROM {t} t LEFT ANTI JOIN {c} USING (id)",
        "SELECT sum(y) FROM {t} WHERE y > 0 AND id IN (SELECT CAST(id AS INT) FROM {c})",
    ],
)
def test_no_answer_for_the_keys_of_a_sample(spark, whole, cohorts, query):
    sample, range_of_ids = cohorts
    with pytest.raises(NotSupportedError, match="that a sample or split has selected"):
        sql_ext.call(spark, "approximate", query=query.format(t=whole.name, c=sample)).collect()
    sql_ext.call(spark, "approximate", query=query.format(t=whole.name, c=range_of_ids)).collect()


@pytest.fixture(scope="module")
def cohorts(spark, whole):
    """Tables of ids: those of a sample, and others."""
    sample, range_of_ids = f"{whole.name}_sample", f"{whole.name}_range"
    spark.sql(f"CREATE TABLE {sample} USING parquet AS SELECT id FROM {whole.name} TABLESAMPLE (10 PERCENT)")
    spark.sql(f"CREATE TABLE {range_of_ids} USING parquet AS SELECT id FROM {whole.name} WHERE id < 400")
    yield sample, range_of_ids
    for name in (sample, range_of_ids):
        spark.sql(f"DROP TABLE {name}")
