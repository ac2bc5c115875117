"""Files that hold a row of a predicate are never left out, and those that cannot hold one are, where that is told."""

import random
from urllib.parse import unquote

import pytest
from pyspark.sql import functions as F

from catalog.pruning.file_conditions import files_that_may_match
from catalog.pruning.row_predicate import RowPredicate

COLUMNS = (
    "n INT, r DOUBLE, c DECIMAL(10,2), s STRING, t TIMESTAMP, z TIMESTAMP_NTZ, d DATE, b BOOLEAN, "
    "o STRUCT<i: BIGINT, `a.b`: STRING>, v CHAR(4), p DATE"
)
LONG = "abcdefghij" * 5


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Five files in four partitions, with nulls, NaN, long texts and microseconds; columns are mapped."""
    made = shared_table(COLUMNS, properties={"delta.columnMapping.mode": "name"}, tail="PARTITIONED BY (p)")
    number = F.col("id")
    for batch, day in enumerate(["2020-01-01", "2020-01-01", "1969-12-31", None, "2020-01-02"]):
        rows = spark.range(batch * 10, batch * 10 + 10).select(
            F.when(number % 5 != 3, number).cast("int").alias("n"),
            F.when(number == 17, F.lit(float("nan"))).otherwise(number / 4 - 3).alias("r"),
            (number / 3).cast("decimal(10,2)").alias("c"),
            F.when(number == 25, F.lit(LONG + "z")).otherwise(F.concat(F.lit("k"), number)).alias("s"),
            F.timestamp_micros(number * 86_400_000_001 + 999).alias("t"),
            F.timestamp_micros(number * 3_600_000_001 - 3_600_000_500).cast("timestamp_ntz").alias("z"),
            F.date_add(F.lit("1969-12-20").cast("date"), number.cast("int")).alias("d"),
            (number % 2 == 0).alias("b"),
            F.struct((number * 10).alias("i"), F.concat(F.lit("w"), number).alias("a.b")).alias("o"),
            F.lit("x").alias("v"),
            F.lit(day).cast("date").alias("p"),
        )
        made.append(rows if batch != 3 else rows.withColumn("n", F.lit(None).cast("int")))
    made.sql("ALTER TABLE {t} RENAME COLUMN n TO m")
    return made


# A column, and literals to compare it with.
LITERALS = {
    "m": ["0", "-3", "17", "30L", "22.5", "1e1", "99999999999"],
    "R": ["-3.0", "1.25", "0D", "CAST('NaN' AS DOUBLE)", "5"],
    "c": ["3.33", "10", "7.001", "12.5D"],
    "s": ["'k1'", "'k49'", f"'{LONG}z'", f"'{LONG}'", "'a'", "'it''s'", "''"],
    "t": [
        "'1970-01-11 00:00:00.001009'",
        "TIMESTAMP '1970-01-21 00:00:00.001019'",
        "DATE '1970-01-30'",
        "'1969-01-01'",
    ],
    "z": ["'1970-01-01 08:59:59.999509'", "TIMESTAMP_NTZ '1970-01-02 00:00:00'", "DATE '1970-01-01'"],
    "d": ["'1970-01-01'", "DATE '1969-12-29'", "TIMESTAMP '1970-01-08 12:00:00'", "'1971'"],
    "p": ["'2020-01-01'", "DATE '2020-01-02'", "'1969-12-31'"],
    "b": ["true", "false"],
    "o.i": ["100", "295", "-1"],
    "o.`a.b`": ["'w2'", "'w19'"],
    "v": ["'x'", "'x   '", "'y'"],
}


def _predicate(chance, depth):
    if depth:
        joined = f" {chance.choice(['AND', 'OR'])} ".join(f"({_predicate(chance, depth - 1)})" for _ in range(2))
        return f"NOT ({joined})" if chance.random() < 0.4 else joined
    column = chance.choice(list(LITERALS))
    values = LITERALS[column]
    one, two = chance.choice(values), chance.choice(values)
    return chance.choice(
        [
            *(f"{column} {op} {one}" for op in ("=", "<", "<=", ">", ">=", "<>", "!=", "<=>")),
            f"{one} < {column}",
            f"{column} BETWEEN {one} AND {two}",
            f"{column} NOT BETWEEN {one} AND {two}",
            f"{column} IN ({one}, {two})",
            f"{column} NOT IN ({one}, {two})",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
            f"coalesce(m, 0) + 1 > {chance.randint(0, 40)}",
            f"NOT {column} = {one}",
            f"{column} = NULL",
        ]
    )


def _kept(spark, snapshot, text):
    predicate = RowPredicate.parse("where", text)
    predicate.check(spark, snapshot.schema)
    return files_that_may_match(spark, snapshot.schema, snapshot.partition_columns, predicate)


def test_files_with_a_matching_row_are_never_left_out(spark, table):
    chance = random.Random(5)
    texts = [_predicate(chance, depth) for depth in (0, 0, 0, 1, 2) for _ in range(6)]
    # One pass tells of every predicate which files have such rows.
    hits = table.data.groupBy(F.element_at(F.split(F.input_file_name(), "/"), -1).alias("file")).agg(
        *[F.coalesce(F.max(F.expr(text)), F.lit(False)).alias(f"q{i}") for i, text in enumerate(texts)]
    )
    having = {unquote(row.file): row for row in hits.collect()}
    snapshot = table.managed.snapshot()
    log = snapshot.log_files.select("path", "stats", "partitionValues").collect()
    files = spark.createDataFrame(log, "path string, stats string, partitionValues map<string,string>")
    left_out = 0
    for i, text in enumerate(texts):
        kept = {
            unquote(row.path).rsplit("/")[-1] for row in _kept(spark, snapshot, text)(files).select("path").collect()
        }
        wanted = {file for file, row in having.items() if row[f"q{i}"]}
        assert wanted <= kept, text
        left_out += len(having) - len(kept)
    assert left_out > len(texts)
    # Without statistics, any file may match.
    bare = files.withColumn("stats", F.lit(None).cast("string"))
    assert _kept(spark, snapshot, "m > 5 AND o.i IS NULL")(bare).count() == len(log)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("m < 5", 1),
        ("p = '2020-01-01'", 2),
        ("p IS NULL", 1),
        ("m IN (1, 44)", 2),
        ("NOT (o.i >= 100 OR t > '1970-01-05')", 1),
        ("s = 'k41' OR d < '1969-12-21'", 2),
        ("length(s) > 100", 5),
        ("lower(s) = 'k1' AND m < 5", 1),
        ("r > 1000", 1),
    ],
)
def test_files_that_cannot_match_are_left_out(spark, table, text, files):
    snapshot = table.managed.snapshot()
    assert snapshot.only(_kept(spark, snapshot, text)).files.count() == files
