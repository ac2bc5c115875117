"""A table that delta-rs wrote goes through everything that USE does; after each step, other engines read its rows.

delta-rs, DuckDB and Polars share no code with Spark. What one of them refuses is named here.
"""

import datetime as dt
from collections import Counter
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaProtocolError
from tables import DeltaTable

import sql_ext

pytestmark = pytest.mark.slow

DAY = dt.date(2024, 1, 1)


def rows(first, count):
    """Rows ``id, x, s, d`` with NULLs."""
    for n in range(first, first + count):
        yield n, n * 7919 % 1000 / 8, None if n % 9 == 0 else f"s{n % 97}", DAY + dt.timedelta(n * 7 % 366)


def arrow(found):
    columns = zip(*found, strict=True)
    types = {"id": pa.int64(), "x": pa.float64(), "s": pa.string(), "d": pa.date32()}
    return pa.table({name: pa.array(values, kind) for (name, kind), values in zip(types.items(), columns, strict=True)})


def by_delta_rs(path):
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("SELECT * FROM t").read_all()
    return list(zip(*(found[field.name].to_pylist() for field in found.schema), strict=True))


def by_duckdb(path):
    extension = pytest.importorskip("duckdb_extension_delta")
    (file,) = Path(next(iter(extension.__path__))).rglob("delta.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{file}'")
        return connection.execute(f"SELECT * FROM delta_scan('file://{path}')").fetchall()


def by_polars(path):
    return pl.read_delta(path).rows()


class Story:
    """The table, the rows that it must have, and who can no longer read it."""

    def __init__(self, spark, path):
        self.spark, self.path, self.rows = spark, path, Counter()
        self.table = DeltaTable(spark, f"delta.`{path}`")
        self.readers = {"delta-rs": by_delta_rs, "DuckDB": by_duckdb, "Polars": by_polars}

    def call(self, name, **arguments):
        return sql_ext.call(self.spark, name, table=self.table.name, **arguments).collect()

    def append(self, write, first, count):
        added = list(rows(first, count))
        self.rows.update(added)
        write(arrow(added))

    def delete(self, divisor):
        self.table.sql(f"DELETE FROM {{t}} WHERE id % {divisor} = 0")
        self.rows = Counter({row: n for row, n in self.rows.items() if row[0] % divisor})

    def check(self, step):
        """Every engine reads the rows; the columns keep their order."""
        assert Counter(map(tuple, self.table.data.collect())) == self.rows, f"Spark after {step}"
        for name, read in self.readers.items():
            assert Counter(read(self.path)) == self.rows, f"{name} after {step}"
        problems = [row for row in self.call("check", deep=True) if row.severity == "error"]
        assert not problems, step


@pytest.fixture
def story(spark, tmp_path):
    return Story(spark, str(tmp_path / "t"))


def writers_of(story):
    """What appends rows, by name."""

    def by_spark(data):
        values = [tuple(row.values()) for row in data.to_pylist()]
        found = story.spark.createDataFrame(values, "a BIGINT, b DOUBLE, c STRING, d DATE").toDF(*data.column_names)
        found.write.format("delta").mode("append").save(story.path)

    return {
        "delta-rs": lambda data: deltalake.write_deltalake(story.path, data, mode="append"),
        "Polars": lambda data: pl.from_arrow(data).write_delta(story.path, mode="append"),
        "Spark": by_spark,
    }


def test_every_engine_reads_the_rows_after_each_step(story):
    writers = writers_of(story)
    story.append(writers["delta-rs"], 0, 400)
    story.check("its first rows")
    story.call("index", columns="x,s,d", cube_size=50)
    story.check("use.index")
    story.call("optimize")
    story.check("use.optimize")
    for number, (name, write) in enumerate(writers.items(), start=1):
        story.append(write, 1000 * number, 60)
        story.check(f"an append by {name} to the indexed table")
    story.delete(7)
    story.check("DELETE without deletion vectors")
    story.call("optimize")
    story.check("use.optimize of appends")
    story.table.checkpoint()
    story.call("vacuum", retention_hours=0.0, force=True)
    story.check("use.vacuum")
    story.call("consolidate_log", modes=["table_metadata", "file_metadata", "events", "commits"])
    story.check("use.consolidate_log")

    story.table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    story.delete(5)
    assert any(file.deletion_vector for file in story.table.files)
    story.check("DELETE with deletion vectors")
    story.call("compact", min_deleted_ratio=0.0)
    story.check("use.compact")
    story.delete(3)
    story.call("purge", older_than=story.table.version, force=True)
    story.check("use.purge")

    story.table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    story.readers.pop("Polars")
    with pytest.raises(DeltaProtocolError, match="columnMapping"):
        by_polars(story.path)
    story.table.sql("ALTER TABLE {t} RENAME COLUMN x TO renamed")
    story.check("RENAME COLUMN of an indexed column")
    story.append(lambda data: writers["Spark"](data.rename_columns(["id", "renamed", "s", "d"])), 9000, 50)
    story.call("optimize")
    story.check("use.optimize after RENAME COLUMN")
    story.call("drop_index")
    story.check("use.drop_index")
