"""What clustering and compaction leave is read by other readers of the format, which share no code with Spark."""

from collections import Counter

import pytest
from tables import create

import sql_ext

pytestmark = pytest.mark.slow

SCHEMA = "id BIGINT, p STRING, v DOUBLE"


def _by_delta_rs(path, version=None):
    deltalake = pytest.importorskip("deltalake")
    table = deltalake.DeltaTable(path, version=version)
    found = deltalake.QueryBuilder().register("t", table).execute("SELECT id, p, v FROM t").read_all()
    return list(zip(*(found[name].to_pylist() for name in ("id", "p", "v")), strict=True))


def _by_polars(path, version=None):
    pytest.importorskip("deltalake")
    polars = pytest.importorskip("polars")
    return polars.read_delta(path, version=version).select("id", "p", "v").rows()


READERS = {"delta-rs": _by_delta_rs, "polars": _by_polars}


def _rows(frame):
    return Counter((r.id, r.p, r.v) for r in frame.select("id", "p", "v").collect())


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("vectors", [False, True], ids=["copies", "vectors"])
@pytest.mark.parametrize("tail", ["", "PARTITIONED BY (p)"], ids=["whole", "partitioned"])
def test_rows_are_those_that_spark_reads(spark, tmp_path, reader, vectors, tail):
    path = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    table = create(spark, f"delta.`{path}`", SCHEMA, properties=properties, tail=tail)
    # Polars 2.1 does not apply a deletion vector to a file whose path has escapes, whoever wrote it.
    prefix = "a" if vectors and reader == "polars" else "a b/"
    for number in range(6):
        rows = spark.range(number * 50, number * 50 + 50)
        rows = rows.selectExpr("id", f"CASE WHEN id % 3 > 0 THEN concat('{prefix}', id % 3) END p", "id / 7 v")
        rows.coalesce(1).write.format("delta").mode("append").save(path)
    table.sql("DELETE FROM {t} WHERE id < 40 OR id = 123")
    appended = table.version
    report = table.optimize(strategy="SizeTieredClustering", options={"min_files": "2"})
    assert report[0].state == "committed"
    clustered = table.version
    table.sql("DELETE FROM {t} WHERE id % 4 = 0")
    deleted = table.version
    sql_ext.call(spark, "compact", table=table.name).collect()
    assert (table.version > deleted) == vectors
    table.checkpoint()
    read = READERS[reader]
    for version in (appended, clustered, deleted, table.version):
        expected = _rows(spark.read.format("delta").option("versionAsOf", version).load(path))
        assert Counter(read(path, version)) == expected, version
    assert Counter(read(path)) == _rows(table.data)
