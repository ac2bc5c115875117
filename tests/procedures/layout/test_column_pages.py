"""Pages of the files that a layout writes: their number depends on the column, and each is sorted."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tables import checksum

from otree.pages import PAGE_ROWS
from sql_ext.diagnosis.parquet_pages import pages_of

ROWS = 40_000
COLUMNS = (
    "x DOUBLE, y BIGINT, flag STRING, supplier BIGINT, reading INT, word STRING, "
    "place STRUCT<a: INT, b: STRUCT<c: STRING>>, tags ARRAY<INT>"
)


def _random(name, values):
    return F.pmod(F.xxhash64("id", F.lit(name)), F.lit(values))


@pytest.fixture
def rows(spark):
    """Values of many widths: few distinct ones, thousands, all different; nulls at every level."""
    nothing = F.lit(None)
    place = F.struct(_random("a", 9).cast("int").alias("a"), F.struct(F.lit("c").alias("c")).alias("b"))
    return spark.range(0, ROWS, 1, 2).select(
        (_random("x", 1_000_003) / 7).alias("x"),
        _random("y", 20).alias("y"),
        F.lit("N").alias("flag"),
        F.when(_random("s0", 10) > 0, _random("s", 8_000)).alias("supplier"),
        _random("r", 10_000).cast("int").alias("reading"),
        F.sha2(F.col("id").cast("string"), 256).alias("word"),
        F.when(_random("p0", 3) > 0, place).otherwise(nothing).alias("place"),
        F.when(_random("t0", 3) > 0, F.array(_random("t", 5).cast("int"), nothing)).alias("tags"),
    )


def _bytes(folder):
    """Bytes of each column in the Parquet files of a folder, and whether all of its chunks have a dictionary."""
    size, has_dictionary = {}, {}
    for file in folder.rglob("*.parquet"):
        metadata = pq.read_metadata(file)
        for group in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(column)
                name = chunk.path_in_schema.split(".")[0]
                size[name] = size.get(name, 0) + chunk.total_compressed_size
                has_dictionary[name] = has_dictionary.get(name, True) and chunk.has_dictionary_page
    return size, has_dictionary


def test_a_layout_has_columns_as_small_as_large_pages_make_them(spark, new_table, rows, tmp_path):
    # The names in the files are others than those of the columns.
    table = new_table(COLUMNS, index="x,y", properties={"delta.columnMapping.mode": "name"})
    table.append(rows.coalesce(1)).index()
    live = [table.path / path for path in table.replayed()[0]]
    assert len(live) == 1
    (laid_out := tmp_path / "laid_out").mkdir()
    (laid_out / "f.parquet").write_bytes(live[0].read_bytes())
    spark.read.parquet(str(laid_out)).write.parquet(str(tmp_path / "large_pages"))

    size, has_dictionary = _bytes(laid_out)
    expected, _ = _bytes(tmp_path / "large_pages")
    names = dict(zip([field.name for field in table.data.schema], size, strict=True))
    for name in ("flag", "supplier", "reading", "word"):
        assert size[names[name]] <= 1.03 * expected[names[name]], name
    assert has_dictionary[names["supplier"]]
    assert has_dictionary[names["reading"]]
    # A box reads few pages of the indexed columns, and would read the whole dictionary.
    assert not has_dictionary[names["x"]]
    # The rows of a page are sorted by the index column with the fewest values, but for the first page.
    sorted_by = pq.read_table(live[0], columns=[names["y"]]).column(0).to_numpy().reshape(-1, PAGE_ROWS)
    assert (np.diff(sorted_by[1:]) >= 0).all()
    assert (np.diff(sorted_by[0]) < 0).any()
    # A filter skips by its pages, however few bytes they have; those of other columns have more rows then.
    with pa.OSFile(str(live[0])) as source:
        pages = pages_of(source, [names["y"], names["flag"]])
    assert pages[names["y"]].rows[1:].max() == PAGE_ROWS
    assert pages[names["flag"]].rows[1:].max() > PAGE_ROWS
    assert checksum(table.data) == checksum(rows)
    assert checksum(table.data.where("x < 1000 AND place.a = 3")) == checksum(rows.where("x < 1000 AND place.a = 3"))


def test_a_writer_that_logs_each_value_has_pages_of_equal_rows(spark):
    jvm = spark.sparkContext._jvm
    logging = jvm.org.apache.parquet.io.RecordConsumerLoggingWrapper(None)
    settings = jvm.org.apache.hadoop.conf.Configuration()
    assert jvm.org.apache.spark.sql.delta.usespark.ColumnPages.of(settings, logging).isEmpty()
