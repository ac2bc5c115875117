"""A MERGE looks only at files that can have keys of its source; its result is that of Delta."""

from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from deltalake import write_deltalake
from random_joins import make_join_tables
from random_merges import MergeTally, run_merges
from spark_jobs import opened_data_files
from statement_tables import COLUMNS, NO_VECTORS, metrics_of, note, rows, run_on_both

FEW = "(SELECT * FROM VALUES (1490L, 1L, 1, 'a'), (1500L, 2L, 2, 'b'), (NULL, 3L, 0, 'c') AS s(id, x, p, s))"
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
SAME = "WHEN MATCHED THEN UPDATE SET s = t.s"
BY_SOURCE = (
    "WHEN MATCHED THEN UPDATE SET s = 'x' WHEN NOT MATCHED BY SOURCE AND t.id % 40 = 1 THEN UPDATE SET s = 'away'"
)


@pytest.fixture(autouse=True)
def any_size(set_conf):
    """A job for the keys of a source pays on the smallest table."""
    set_conf("spark.qbeast.use.merges.bytes", "1")


def merge(source, condition="t.id = s.id", clauses=UPSERT):
    return f"MERGE INTO {{t}} t USING {source} s ON {condition} {clauses}"


@pytest.fixture(scope="module")
def by_key(spark, shared_table):
    """Two tables of the same rows, of which the first is indexed by the key. Each test leaves their rows equal."""
    data = rows(spark).persist()
    indexed = shared_table(COLUMNS, index="id,p", cube_size=100, file_bytes=4_000, properties=NO_VECTORS)
    plain = shared_table(COLUMNS, properties=NO_VECTORS)
    for table in (indexed, plain):
        table.append(data)
    data.unpersist()
    indexed.index()
    assert len(indexed.files) > 8
    return indexed, plain


def compared(indexed, plain, statement, set_conf):
    """Runs a statement on both tables, on the second one without the keys of its source."""
    set_conf("spark.qbeast.use.joins.enabled", "true")
    indexed.sql(statement)
    set_conf("spark.qbeast.use.joins.enabled", "false")
    plain.sql(statement)
    assert indexed.checksum() == plain.checksum()
    return note(indexed).get("files_with_keys")


def paths_with(table, ranges):
    """The files that can have an id in one of the ranges, by their statistics; fewer than all."""
    paths = {
        file.path
        for file in table.files
        if any(
            file.stats["minValues"]["id"] <= last and first <= file.stats["maxValues"]["id"] for first, last in ranges
        )
    }
    assert len(paths) < len(table.files)
    return paths


def files_with(table, ranges):
    return len(paths_with(table, ranges))


MATCHING = "MERGE operation - scanning files for matches"


@pytest.mark.slow
def test_files_without_its_keys_are_not_opened(spark, by_key, set_conf):
    """The first phase opens files that can have keys, the second phase those of them that have some."""
    indexed, plain = by_key
    wanted, everything = paths_with(indexed, [(1490, 1490), (1500, 1500)]), {file.path for file in plain.files}
    with opened_data_files(spark) as opened:
        indexed.sql(merge(FEW))
    rewritten = set(indexed.removed(indexed.version))
    assert opened.pop(MATCHING) == wanted
    assert note(indexed)["files_with_keys"] == len(wanted)
    assert rewritten < wanted
    assert set().union(*opened.values()) == rewritten
    set_conf("spark.qbeast.use.joins.enabled", "false")
    with opened_data_files(spark) as opened:
        plain.sql(merge(FEW))
    assert opened.pop(MATCHING) == everything
    assert set().union(*opened.values()) == set(plain.removed(plain.version))
    assert indexed.checksum() == plain.checksum()


@pytest.mark.slow
def test_it_looks_at_files_with_its_keys_only(spark, by_key, new_table, set_conf):
    indexed, plain = by_key
    source = new_table(COLUMNS)
    source.append(spark.range(700, 760).selectExpr("id", "id AS x", "CAST(id % 3 AS INT) AS p", "'d' AS s"))
    files = files_with(indexed, [(700, 759)])
    assert compared(indexed, plain, merge(source.name), set_conf) == files
    # More keys than are compared one by one: their range.
    set_conf("spark.qbeast.use.joins.keys", "50")
    files = files_with(indexed, [(700, 759)])
    assert compared(indexed, plain, merge(source.name), set_conf) == files
    # Rows without a match are looked for in all files.
    assert compared(indexed, plain, merge(FEW, clauses=BY_SOURCE), set_conf) is None


@pytest.mark.slow
def test_files_of_small_tables_are_all_looked_at(by_key, set_conf):
    set_conf("spark.qbeast.use.merges.bytes", "1g")
    run_on_both(*by_key, merge("(SELECT id, id AS x, 1 AS p, 'e' AS s FROM range(700, 800))"))


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_plain_table_gains_by_statistics(spark, new_table, set_conf, vectors):
    properties = {"delta.enableDeletionVectors": vectors}
    tables = [new_table(COLUMNS, properties=properties) for _ in range(2)]
    for table in tables:
        for first in range(0, 3000, 300):
            table.append(
                spark.range(first, first + 300, numPartitions=1).selectExpr("id", "id AS x", "1 AS p", "'' AS s")
            )
    assert compared(*tables, merge(FEW), set_conf) == 2


def test_keys_that_cannot_be_read_restrict_nothing(spark, by_key):
    """The join evaluates only the keys of new rows; the keys are read of all rows."""
    indexed, _ = by_key
    source = "(SELECT * FROM VALUES ('old', false), ('1500', true) AS s(k, is_new))"
    indexed.sql(merge(source, "s.is_new AND t.id = CAST(s.k AS BIGINT)", SAME))
    assert note(indexed) == {"repeats": 0, "plain_files": {}, "keys_error": "CAST_INVALID_INPUT"}
    assert metrics_of(indexed)["numTargetRowsUpdated"] == "1"
    message = spark.sql(f"CALL use.status('{indexed.name}', details => true)").first().message
    assert message == "1 MERGE looked at all files, since keys could not be read: CAST_INVALID_INPUT 1"


PARIS = {"spark.sql.session.timeZone": "Europe/Paris", "spark.sql.files.supportSecondOffsetFormat": "false"}


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize(
    ("column", "properties", "conf", "stored", "statement", "key"),
    [
        # The log has 0.1, the file the FLOAT next to it.
        ("FLOAT", {"delta.enableTypeWidening": "true"}, {}, "CAST(0.1 AS FLOAT)",
         "ALTER TABLE {t} ALTER COLUMN k TYPE DOUBLE", "CAST(CAST(0.1 AS FLOAT) AS DOUBLE)"),
        # The log has the offset +00:09 in place of +00:09:21.
        ("TIMESTAMP", {}, PARIS, "TIMESTAMP'1900-01-01 00:00:00'", None, "TIMESTAMP'1900-01-01 00:00:00'"),
    ],
)  # fmt: skip
def test_values_beyond_their_statistics_match(
    spark, new_table, set_conf, column, properties, conf, stored, statement, key
):
    for name, value in conf.items():
        set_conf(name, value)
    table = new_table(f"k {column}, v INT", properties=properties)
    spark.sql(f"SELECT {stored} AS k, 1 AS v").write.format("delta").mode("append").save(str(table.path))
    if statement:
        table.sql(statement)
    clauses = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    table.sql(merge(f"(SELECT * FROM VALUES ({key}, 2) AS s(k, v))", "t.k = s.k", clauses))
    assert [row.v for row in table.data.collect()] == [2]


def test_decimals_whose_bounds_are_those_of_doubles_match(spark, new_table):
    """As delta-rs writes them; beyond those of BIGINT, it has no bounds either."""
    table = new_table("a DECIMAL(20,2), b DECIMAL(38,0), v INT")
    a, b = "12345678901234567.89", "90071992547409930001"
    schema = pa.schema({"a": pa.decimal128(20, 2), "b": pa.decimal128(38, 0), "v": pa.int32()})
    rows = [{"a": Decimal(a), "b": Decimal(b), "v": 1}, {"a": Decimal(f"-{a}"), "b": Decimal(f"-{b}"), "v": 1}]
    for row in rows:
        write_deltalake(str(table.path), pa.Table.from_pylist([row], schema), mode="append")
    source = f"(SELECT * FROM VALUES ({a}BD, {b}BD, 2), (-{a}BD, -{b}BD, 2) AS s(a, b, v))"
    clauses = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    table.sql(merge(source, "t.a = s.a AND t.b = s.b", clauses))
    assert [row.v for row in table.data.collect()] == [2, 2]


def test_keys_that_are_padded_when_they_are_read_match(spark, new_table):
    """A writer that knows the path only does not pad. In SQL, Delta refuses a MERGE by such a key."""
    table = new_table("c CHAR(5), v INT")
    spark.sql("SELECT 'ab' AS c, 1 AS v").write.format("delta").mode("append").save(str(table.path))
    source = spark.sql("SELECT * FROM VALUES ('ab   ', 2) AS s(c, v)").alias("s")
    merged = DeltaTable.forName(spark, table.name).alias("t").merge(source, "t.c = s.c")
    merged.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(values={"c": "s.c", "v": "s.v"}).execute()
    assert [row.v for row in table.data.collect()] == [2]


# Delta replaces functions of the time by constants, and leaves others that depend on when or where they are computed.
CURRENT = "current_user() <> ''"
# What Delta stores of sources.
NOTHING, CHANGING = "none", "auto"
SOURCES = {
    # Deterministic, but Delta has not examined what it reads.
    "not examined": (NOTHING, "range(1490, 1500)", False),
    "random rows of the statement": (NOTHING, "VALUES (1490L), (1491L) AS v(id) WHERE rand() < 2", False),
    "rows of a user": (NOTHING, f"VALUES (1490L), (1491L) AS v(id) WHERE {CURRENT}", False),
    "rows of the statement": (NOTHING, "VALUES (1490L), (1491L) AS v(id)", True),
    # Delta takes it for one that stays the same.
    "a value of a user": (CHANGING, f"(SELECT IF({CURRENT}, 1490L, 1491L) AS id)", False),
    "stored random rows": (CHANGING, "range(1490, 1500) WHERE rand() < 2", True),
    "stored rows of a user": (CHANGING, f"VALUES (1490L), (1491L) AS v(id) WHERE {CURRENT}", True),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("not examined", "rows of a user") else pytest.mark.slow)
        for name in SOURCES
    ],
)
def test_sources_that_may_change_restrict_nothing(by_key, set_conf, name):
    """The keys that were read may differ from those of the statement."""
    stored, rows_of, is_restricted = SOURCES[name]
    indexed, _ = by_key
    set_conf("spark.databricks.delta.merge.materializeSource", stored)
    indexed.sql(merge(f"(SELECT id FROM {rows_of})", clauses=SAME))
    assert ("files_with_keys" in note(indexed)) == is_restricted
    assert int(metrics_of(indexed)["numTargetRowsUpdated"]) > 0


@pytest.mark.slow
def test_keys_are_not_those_of_another_call_of_a_function(spark, new_table):
    """Each call returns an id of another file. Delta stores a source that calls it, and no condition."""
    table = new_table("id BIGINT, s STRING", properties=NO_VECTORS)
    ids = spark.range(1000).selectExpr("id", "'a' AS s").repartitionByRange(10, "id")
    ids.write.format("delta").mode("append").saveAsTable(table.name)
    spark.udf.registerJavaFunction("changing", "io.usespark.testing.ChangingNumber", "bigint")
    table.sql(merge("(SELECT changing(id) AS id FROM VALUES (950L) AS v(id))", clauses=SAME))
    assert metrics_of(table)["numTargetRowsUpdated"] == "1"
    assert note(table)["files_with_keys"] == 1
    table.sql(merge("(SELECT id FROM VALUES (950L) AS v(id))", "t.id = changing(s.id)", SAME))
    assert "files_with_keys" not in note(table)


@pytest.mark.slow
def test_random_merges(spark, tmp_path):
    """A sample of ``make fuzz-joins ARGS=--merges``."""
    tally = MergeTally()
    for _ in run_merges(spark, make_join_tables(spark, "default.merged", Random(3)), tmp_path, 11, 40, tally):
        pass
    assert not tally.failures, "\n".join(tally.failures)
    assert not tally.weaknesses, tally.text


def texts(*values):
    """Rows of strings, of which some are not valid."""
    rows = ", ".join(f"(X'{value.hex()}')" for value in values)
    return f"SELECT CAST(x AS STRING) s, 1 n FROM VALUES {rows} v(x)"


@pytest.mark.slow
def test_strings_that_are_not_valid_match(spark, new_table, set_conf):
    """The bounds of their files have U+FFFD for bytes that cannot be decoded, which changes the order."""
    tables = [new_table("s STRING, n INT", properties=NO_VECTORS) for _ in range(2)]
    one, two, four = b"\x80", "é".encode(), "😀".encode()
    for table in tables:
        for values in ([one], [one + b"1", two], [four, b"\xf8"], [b"abc"], [b"b" + two]):
            table.append(spark.sql(texts(*values)).coalesce(1))
    clauses = "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *"
    for key in (one, two, four):
        compared(*tables, merge(f"({texts(key)})", "t.s = s.s", clauses), set_conf)
    assert compared(*tables, merge(f"({texts(b'abc')})", "t.s = s.s", clauses), set_conf) == 1
    assert compared(*tables, merge(f"({texts(b'b' + two)})", "t.s = s.s", clauses), set_conf) == 1
    source = new_table("s STRING, n INT").append(spark.sql(texts(b"a", one, two)))
    set_conf("spark.qbeast.use.joins.keys", "2")
    compared(*tables, merge(source.name, "t.s = s.s", clauses), set_conf)


@pytest.mark.slow
def test_keys_beyond_ascii_skip_files(spark, new_table, set_conf):
    """Unless a bound may be one of a string that is not valid, whose files a job looks for."""
    tables = [new_table("s STRING, n INT", properties=NO_VECTORS) for _ in range(2)]
    letters = ["а", "б", "в", "г"]
    for table in tables:
        for letter in letters:
            table.append(spark.createDataFrame([(letter, 1), (letter + "я", 1)], "s STRING, n INT"))
    clauses = "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *"
    statement = merge(f"({texts('в'.encode())})", "t.s = s.s", clauses)
    assert compared(*tables, statement, set_conf) == 1
    for table in tables:
        table.append(spark.createDataFrame([("\ufffd", 1)], "s STRING, n INT"))
    assert compared(*tables, statement, set_conf) is None
