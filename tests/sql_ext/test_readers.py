"""Samples and boxes without Spark: rows and files are those that Spark reads."""

import subprocess
import sys

import polars as pl
import pyarrow as pa
import pytest
from pages import ROOT
from pyspark.sql import functions as F

import sql_ext
from catalog.errors import NotSupportedError
from sql_ext import readers
from sql_ext.readers.spark_hash import hash_of

CONDITIONS = [
    None,
    "id BETWEEN 100 AND 900 AND v > 0.25",
    "NOT (v <= 0.5) OR v IS NULL",
    "f > 0.1 AND f <> 2.5",
    "f = 0.1 OR d = 12.5 OR d >= 900.0",
    "v >= 'NaN' OR v < -3e-1",
    "day >= DATE'2020-06-01' AND day < '2020-07-15'",
    "ts < TIMESTAMP'2020-09-13 12:30:00' OR ts >= '2020-09-13 14:00:00Z'",
    "s LIKE 's1%' AND NOT b",
    "s IN ('s3', 'zz', NULL) OR s <=> NULL",
    "p = 'a b/ü' AND id > 5",
    "p IS NULL AND b",
    "`in ner`.x < 300 AND extra IS NULL",
    "NOT s IN ('s3', NULL)",
    "1000 > id AND n <> 3",
]


_OTHER_FILES = [CONDITIONS[n] for n in (1, 2, 3, 4, 5, 7, 12)]


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Two revisions, unindexed and deleted rows, renamed and added columns, partitions, nulls, NaN."""
    made = shared_table(
        "id BIGINT, day DATE, w DOUBLE, f FLOAT, s STRING, ts TIMESTAMP, tn TIMESTAMP_NTZ, d DECIMAL(20,3), b BOOLEAN, "
        "n TINYINT, st STRUCT<x: INT, y: ARRAY<STRING>>, m MAP<STRING,INT>, p STRING",
        index="s:hashing,day",
        cube_size=200,
        file_bytes="16kb",
        tail="PARTITIONED BY (p)",
        properties={"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    )

    def rows(start, count):
        return spark.range(start, start + count, 1, 2).selectExpr(
            "id", "date_add(DATE'2020-01-01', CAST(id % 700 AS INT)) AS day",
            "CASE WHEN id % 50 = 0 THEN DOUBLE('NaN') WHEN id % 51 = 0 THEN NULL ELSE rand(1) * 2 - 1 END AS w",
            "CAST(CASE id % 4 WHEN 0 THEN 0.1 WHEN 1 THEN 2.5 WHEN 2 THEN -0.0 END AS FLOAT) AS f",
            "IF(id % 9 = 0, NULL, concat('s', id % 20)) AS s", "timestamp_seconds(1600000000 + id) AS ts",
            "TIMESTAMP_NTZ'2020-01-01 00:00:00' + make_dt_interval(0, 0, id) AS tn", "CAST(id / 8 AS DECIMAL(20,3)) d",
            "IF(id % 7 = 0, NULL, id % 2 = 0) AS b", "CAST(id % 5 AS TINYINT) AS n",
            "named_struct('x', CAST(id AS INT), 'y', array('a', CAST(id AS STRING))) st", "map('k', CAST(id AS INT)) m",
            "IF(id % 3 = 0, 'a b/ü', NULL) AS p",
        )  # fmt: skip

    made.append(rows(0, 3_000)).index()
    made.checkpoint()
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='st.x,w,ts')")
    made.append(rows(3_000, 4_000)).index()
    made.append(rows(7_000, 500))
    made.sql("ALTER TABLE {t} RENAME COLUMN w TO v")
    made.sql("ALTER TABLE {t} RENAME COLUMN st TO `in ner`")
    made.sql("ALTER TABLE {t} ADD COLUMN extra INT")
    made.sql("DELETE FROM {t} WHERE id % 10 = 1")
    return made


def spark_rows(data):
    return sorted(map(repr, (row.asDict(recursive=True) for row in data.collect())))


def arrow_rows(found):
    rows = []
    for row in found.to_pylist(maps_as_pydicts="strict"):
        ts = row["ts"].replace(tzinfo=None) if "ts" in row and row["ts"] is not None else None
        rows.append(repr({**row, **({"ts": ts} if ts else {})}))
    return sorted(rows)


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize("where", CONDITIONS)
def test_rows_and_files_of_a_box_and_a_sample(table, where):
    path = str(table.path)
    for fraction in (None, 0.2):
        data = table.data.where(where or "true")
        data = data if fraction is None else data.sample(fraction)
        plan = readers.scan(path, fraction, where)
        assert arrow_rows(plan.to_table()) == spark_rows(data)
        reports = sql_ext.read_report(data).scans
        if not reports:  # Spark knows that no row is asked for.
            continue
        (report,) = reports
        assert (plan.table_files, plan.table_bytes, plan.version) == (
            report.total_files,
            report.total_bytes,
            report.version,
        )
        # Delta uses the maxima of DOUBLE columns, which need not contain NaN, and no minima of nested columns.
        assert plan.files == report.kept_files or where in _OTHER_FILES


def test_draws_are_those_of_spark(table):
    path, count = str(table.path), 0
    for draw in (1, 2, 3):
        found = readers.scan(path, 1 / 3, draw=draw, columns=["id"]).to_table()
        expected = sql_ext.sample(table.data, 1 / 3, draw=draw).select("id").collect()
        assert sorted(found["id"].to_pylist()) == sorted(row.id for row in expected)
        count += found.num_rows
    assert count == table.data.count()


def test_forms(table):
    plan = readers.scan(str(table.path), 0.3, "id < 4000", columns=["s", "id"])
    assert plan.columns == ("s", "id")
    expected = plan.to_table()
    assert plan.to_batches().read_all().equals(expected)
    assert plan.to_dataset().to_table().equals(expected)
    assert len(plan.to_pandas()) == expected.num_rows
    lazy = plan.to_polars()
    assert lazy.collect().sort("id").equals(pl.from_arrow(expected).sort("id"))
    assert lazy.filter(pl.col("id") > 100).select(pl.len()).collect().item() == sum(
        n > 100 for n in expected["id"].to_pylist()
    )
    assert len(lazy.head(7).collect()) == 7
    relation = plan.to_duckdb()
    assert relation.count("*").fetchall() == relation.count("*").fetchall() == [(expected.num_rows,)]
    assert readers.scan(str(table.path), version=1).to_table().num_rows == 3_000


def test_hashes_of_all_types(spark, table):
    names = ["id", "day", "v", "f", "s", "ts", "tn", "d", "b", "n"]
    data = table.data.select(*names, F.hash(*names).alias("of_all"), *(F.hash(n).alias(f"of_{n}") for n in names))
    found = data.toArrow()
    for name in names:
        assert (hash_of([found[name]], found.num_rows) == found[f"of_{name}"].to_numpy()).all(), name
    assert (hash_of([found[name] for name in names], found.num_rows) == found["of_all"].to_numpy()).all()


def test_without_an_index(spark, new_table):
    made = new_table("id BIGINT").append(spark.range(10))
    assert readers.scan(str(made.path), where="id < 3").to_table().num_rows == 3
    with pytest.raises(sql_ext.UseError, match="NOT_INDEXED"):
        readers.scan(str(made.path), 0.1)


def test_the_import_needs_no_spark():
    others = "{'pyspark', 'py4j', 'deltalake', 'polars', 'duckdb'}"
    program = f"import sys, sql_ext.readers; assert not {others} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(ROOT)})


@pytest.mark.slow
def test_shallow_clones_are_refused(spark, new_table):
    made = new_table("id BIGINT").append(spark.range(10))
    clone = new_table("id BIGINT")
    spark.sql(f"CREATE OR REPLACE TABLE {clone.name} SHALLOW CLONE {made.name}")
    with pytest.raises(sql_ext.UseError, match="files of another table"):
        readers.scan(str(clone.path)).to_table()


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_values_that_spark_converts_from_the_hybrid_calendar_are_refused(spark, tmp_path, set_conf, kind):
    set_conf("spark.sql.parquet.outputTimestampType", kind)
    rows = ", ".join(f"({year}, DATE'{year}-01-01', TIMESTAMP'{year}-01-01 12:00:00')" for year in (1500, 1850))
    for mode in ("LEGACY", "CORRECTED"):
        set_conf("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
        set_conf("spark.sql.parquet.int96RebaseModeInWrite", mode)
        path = str(tmp_path / mode)
        written = spark.sql(f"SELECT id, d, t, CAST(t AS TIMESTAMP_NTZ) AS n FROM VALUES {rows} AS rows(id, d, t)")
        written.coalesce(1).write.format("delta").save(path)
        data = spark.read.format("delta").load(path)
        for column in ("id", "d", "t", "n"):
            plan = readers.scan(path, columns=[column])
            if mode == "LEGACY" and column in ("d", "t"):
                with pytest.raises(NotSupportedError, match=f"The column {column} of {path}/.* before"):
                    plan.to_table()
            else:
                array = plan.to_table()[column]
                array = array.cast(pa.timestamp("us")) if column == "t" else array
                assert sorted(array.to_pylist()) == sorted(row[column] for row in data.collect())
        # The log has the dates of today's calendar.
        assert readers.scan(path, where="d = DATE'1500-01-01'").files == 1
        assert readers.scan(path, where="d < DATE'1500-01-01'").files == 0


@pytest.mark.slow
def test_names_of_a_converted_table_in_another_case(spark, tmp_path):
    path = str(tmp_path / "converted")
    for number, names in enumerate((("ID", "S", "A"), ("id", "s", "a"))):
        outer, nested, inner = names
        data = spark.range(number, number + 1).selectExpr(f"id AS {outer}", f"named_struct('{inner}', id) AS {nested}")
        data.write.mode("append").parquet(path)
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    data = spark.read.format("delta").load(path)
    for where in ("true", "s.a = 0", "id = 0", "id IS NULL"):
        found = readers.scan(path, where=None if where == "true" else where).to_table().to_pylist()
        assert sorted(map(repr, found)) == spark_rows(data.where(where)), where


@pytest.mark.slow
def test_columns_mapped_by_ids(spark, new_table):
    made = new_table(
        "id BIGINT, s STRUCT<x: INT, l: ARRAY<STRUCT<y: INT>>>, m MAP<STRING, STRUCT<z: INT>>, p STRING",
        index="id",
        tail="PARTITIONED BY (p)",
        properties={"delta.columnMapping.mode": "id", "delta.enableRowTracking": "true"},
    )
    rows = spark.range(100).selectExpr(
        "id", "named_struct('x', int(id), 'l', array(named_struct('y', 7))) AS s",
        "map('k', named_struct('z', int(id))) AS m", "string(id % 2) AS p",
    )  # fmt: skip
    made.append(rows).index()
    made.append(rows)
    made.sql("ALTER TABLE {t} ADD COLUMNS (extra INT, s.more INT)")
    made.sql("ALTER TABLE {t} RENAME COLUMN s.x TO renamed")
    for where in ("true", "s.renamed < 50 AND p = '1'", "extra IS NULL AND s.more IS NULL AND id > 70"):
        found = readers.scan(str(made.path), where=None if where == "true" else where).to_table()
        assert arrow_rows(found) == spark_rows(made.data.where(where)), where
