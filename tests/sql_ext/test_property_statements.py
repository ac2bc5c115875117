"""Statements that set properties and change columns, in an attached session: refused at once, or made good at once."""

import functools
import importlib

import pytest
from placement import check_placement
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions import captured
from pyspark.sql import DataFrame
from tables import another_engine, numbers

import sql_ext
from sql_ext import bridge, read_report

UNKNOWN = "TBLPROPERTIES ('use.index.colums' = 'x')"
WRONG = "TBLPROPERTIES ('use.index.columns' = 'zz')"


@pytest.fixture(scope="module")
def plain(spark, shared_table):
    return shared_table("x INT, y STRING", index="x")


@pytest.mark.quick_sample(8)
@pytest.mark.parametrize("clause", [UNKNOWN, WRONG])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {new} (x INT) USING delta {clause}",
        "CREATE TABLE {new} (x INT) USING qbeast {clause}",
        "CREATE TABLE {new} USING delta {clause} AS SELECT 1 x",
        "CREATE TABLE {new} USING qbeast OPTIONS (columnsToIndex 'x') {clause} AS SELECT 1 x",
        "CREATE OR REPLACE TABLE {new} USING delta {clause} AS SELECT 1 x",
        "CREATE TABLE delta.`{folder}/new` (x INT) USING delta {clause}",
        "CREATE TABLE {new} LIKE {t} {clause}",
        "CREATE TABLE {new} LIKE {parquet} USING delta {clause}",
        "CREATE TABLE {new} SHALLOW CLONE {t} {clause}",
        "REPLACE TABLE {t} (x INT) USING delta {clause}",
        "ALTER TABLE {t} SET {clause}",
        "ALTER TABLE delta.`{path}` SET {clause}",
    ],
)
def test_properties_are_refused_by_every_statement(spark, plain, tmp_path, statement, clause):
    before, new = plain.state(), "default.refused"
    if "{parquet}" in statement:
        spark.sql("CREATE TABLE IF NOT EXISTS default.of_parquet USING parquet AS SELECT 1 x")
    text = statement.format(
        new=new, t=plain.name, path=plain.path, folder=tmp_path, clause=clause, parquet="default.of_parquet"
    )
    code = "USE_UNKNOWN_PROPERTY" if clause == UNKNOWN else "USE_(UNKNOWN_COLUMN|INVALID_ARGUMENT|NO_INDEX_COLUMNS)"
    try:
        with pytest.raises(AnalysisException, match=code):
            spark.sql(text)
    finally:
        spark.sql("DROP TABLE IF EXISTS default.of_parquet")
    assert plain.state() == before
    assert not spark.catalog.tableExists(new)
    assert not (tmp_path / "new").exists()


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {new} (x INT) {clause}",
        "CREATE TABLE {new} USING parquet {clause} AS SELECT 1 x",
        "CREATE TABLE IF NOT EXISTS {new} (x STRING) USING csv {clause}",
        "ALTER TABLE {parquet} SET {clause}",
    ],
)
def test_tables_of_other_formats_refuse_properties_of_use(spark, statement):
    new, parquet = "default.refused", "default.of_parquet"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {parquet} USING parquet AS SELECT 1 x")
    try:
        text = statement.format(new=new, parquet=parquet, clause="TBLPROPERTIES ('use.index.columns' = 'x')")
        with pytest.raises(AnalysisException, match=r"USE_NOT_A_DELTA_TABLE.*use\.index\.columns.*USING delta"):
            spark.sql(text)
        assert not spark.catalog.tableExists(new)
        assert spark.sql(f"SHOW TBLPROPERTIES {parquet}").where("key LIKE 'use%'").count() == 0
        others = "TBLPROPERTIES ('use.of.somebody' = 'x', 'a' = 'b')"
        spark.sql(statement.format(new=new, parquet=parquet, clause=others))
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {new}")
        spark.sql(f"DROP TABLE {parquet}")


def test_views_refuse_properties_of_use(spark):
    clause, view = "TBLPROPERTIES ('use.index.columns' = 'x')", "default.refused_view"
    spark.sql(f"CREATE VIEW {view} TBLPROPERTIES ('use.of.somebody' = 'x') AS SELECT 1 x")
    try:
        for statement in (
            f"ALTER VIEW {view} SET {clause}",
            f"CREATE OR REPLACE VIEW {view} {clause} AS SELECT 1 x",
            f"CREATE VIEW default.another_view {clause} AS SELECT 1 x",
        ):
            with pytest.raises(AnalysisException, match=r"USE_NOT_A_DELTA_TABLE.*\(view\).*set it on its tables"):
                spark.sql(statement)
        spark.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('a' = 'b')")
    finally:
        spark.sql(f"DROP VIEW {view}")


@pytest.mark.quick_sample(4)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE {new} USING delta {clause} AS SELECT 1 x",
        "CREATE TABLE {new} (x INT) USING qbeast {clause}",
        "CREATE TABLE {new} LIKE {t} {clause}",
        "CREATE TABLE {new} SHALLOW CLONE {t} {clause}",
        "CREATE TABLE {new} (x INT) USING delta {clause}",
        "CREATE TABLE {new} USING qbeast OPTIONS (columnsToIndex 'x') {clause} AS SELECT 1 x",
        "CREATE TABLE {new} LIKE {parquet} USING delta {clause}",
        "REPLACE TABLE {replaced} (x INT) USING delta {clause}",
        "writer",
        "builder",
    ],
)
def test_a_new_table_gets_retentions_of_delta_as_long_as_its_own(spark, plain, monkeypatch, statement):
    new, parquet, key = "default.retained", "default.of_parquet", "use.retention.hours"
    try:
        if "{parquet}" in statement:
            spark.sql(f"CREATE TABLE {parquet} USING parquet AS SELECT 1 x")
        if "{replaced}" in statement:
            spark.sql(f"CREATE TABLE {new} (y INT) USING delta")
        if statement == "writer":
            spark.range(1).writeTo(new).using("delta").tableProperty(key, "1000").create()
        elif statement == "builder":
            # The import replaces the conversion of exceptions, for all tests of the process.
            monkeypatch.setattr(captured, "convert_exception", captured.convert_exception)
            tables = importlib.import_module("delta.tables")
            tables.DeltaTable.create(spark).tableName(new).addColumn("x", "INT").property(key, "1000").execute()
        else:
            clause = f"TBLPROPERTIES ('{key}' = '1000')"
            spark.sql(statement.format(new=new, replaced=new, t=plain.name, clause=clause, parquet=parquet))
        properties = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {new}").collect()}
        assert properties[key] == "1000"
        assert properties["delta.deletedFileRetentionDuration"] == "interval 3600000 seconds"
        assert properties["delta.logRetentionDuration"] == "interval 3600000 seconds"
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {parquet}")
        spark.sql(f"DROP TABLE IF EXISTS {new}")


def test_properties_of_other_formats_are_not_ours(spark):
    spark.sql(f"CREATE TABLE default.not_delta (x INT) USING parquet {UNKNOWN}")
    spark.sql("DROP TABLE default.not_delta")


def test_texts_of_a_length_are_indexed_from_the_first_statement(spark, new_table, set_conf):
    table = new_table("c CHAR(4), v VARCHAR(9)", properties={"use.index.columns": "c,v"})
    spark.range(300).selectExpr("CAST(id % 90 AS STRING)", "CAST(id AS STRING)").write.insertInto(table.name)
    table.optimize()
    set_conf("spark.sql.readSideCharPadding", "false")  # for the judge, which reads files
    assert check_placement(table) == 300


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_texts_that_a_writer_has_not_padded_are_in_samples(spark, new_table, vectors):
    """A writer that names the path does not pad them; each write begins a revision."""
    properties = {"use.index.onWrite": "true", "delta.enableDeletionVectors": vectors}
    table = new_table("id BIGINT, x INT, c CHAR(12)", index="x,c", properties=properties)
    for first in (0, 4):
        rows = spark.range(first, first + 4, 1, 1).selectExpr(
            "id", f"CAST({10**first} + id AS INT) x", "concat('c', id) c"
        )
        rows.write.format("qbeast").mode("append").save(str(table.path))

    def sampled():
        parts = [part.select("id") for part in table.data.randomSplit([0.2] * 5)]
        return sorted(row.id for row in functools.reduce(DataFrame.union, parts).collect())

    def problems():
        return sql_ext.call(spark, "check", table=table.name, deep=True).where("severity = 'error'").collect()

    assert sampled() == list(range(8))
    table.sql("UPDATE {t} SET id = id + 100 WHERE id = 3")
    table.sql("DELETE FROM {t} WHERE id = 6")
    assert not problems()
    table.optimize()
    assert sampled() == [0, 1, 2, 4, 5, 7, 103]
    assert not problems()


def test_mistakes_of_another_engine_are_told_and_can_be_removed(spark, new_table):
    with another_engine():
        table = new_table("id BIGINT, x DOUBLE, y INT, s STRING", properties={"use.index.colums": "x"})
    told = "There is no property 'use.index.colums', did you mean use.index.columns?"
    with pytest.raises(sql_ext.UseError, match="has no index columns") as refused:
        table.optimize()
    assert told in refused.value.message
    status = sql_ext.call(spark, "status", table=table.name).collect()
    assert [r.message for r in status] == [told]
    summary = "use_catalog.system_lake_tables.metastore_summary"
    row = spark.table(summary).where(f"name = '{table.name.removeprefix('default.')}'").collect()[0]
    assert row.last_error == f"USE_UNKNOWN_PROPERTY: {told}"
    # Other statements go on.
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'x')")
    notes = (
        "UnindexedFiles: no unindexed files",
        "SortedRunCompaction: the table has no indexed files yet",
        told,
    )
    assert [r.message for r in table.optimize()] == ["; ".join(notes)]
    table.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('use.index.colums')")
    assert told not in table.optimize()[0].message


@pytest.mark.slow
def test_odd_names_are_indexed_renamed_and_kept(spark, new_table):
    odd = "`a,b`:quantiles,`c.d`,`e:f`:hashing,`q``r`"
    table = new_table(
        "id BIGINT, `a,b` DOUBLE, `c.d` INT, `e:f` STRING, `q``r` BIGINT", index=odd, cube_size=200, file_bytes="4kb",
        properties={"delta.columnMapping.mode": "name"},
    )  # fmt: skip
    rows = numbers(spark, 3000).selectExpr("id", "x `a,b`", "y `c.d`", "s `e:f`", "id % 50 `q``r`")
    table.append(rows).index()
    assert check_placement(table) == 3000
    shown = spark.table(f"{table.name}.revisions").where("revision_id = 1").collect()[0].columns
    assert ",".join(shown) == odd.replace(":quantiles", "").replace(":hashing", "")
    measured = sql_ext.call(spark, "clustering_information", table=table.name, columns=",".join(shown)).collect()
    assert [r.columns for r in measured][:4] == shown
    for condition in ("`a,b` < 0.1", "`c.d` < 100"):
        read = table.data.where(condition)
        scans = read_report(read).scans
        assert scans[0].kept_files < len(table.files)
        assert read.count() == rows.where(condition).count()
    sample = table.data.sample(0.1)
    assert read_report(sample).weight_filters == 1
    assert 0 < sample.count() < 1000

    version = table.version
    table.sql("ALTER TABLE {t} RENAME COLUMN `a,b` TO `x, ``y`")
    assert table.version == version + 1
    renamed = "`x, ``y`:quantiles,`c.d`,`e:f`:hashing,`q``r`"
    configuration = table.managed.snapshot().configuration
    assert configuration["use.index.columns"] == configuration["use.index.columnsAsIndexed"] == renamed
    with pytest.raises(AnalysisException, match=r"USE_INDEXED_COLUMN.*use\.drop_index"):
        table.sql("ALTER TABLE {t} DROP COLUMN `c.d`")
    more = rows.selectExpr("id + 3000 id", "`a,b` `x, ``y`", "`c.d`", "`e:f`", "`q``r`").limit(100)
    option = {"columnsToIndex": renamed}
    more.write.format("qbeast").options(**option).mode("append").saveAsTable(table.name)
    assert not table.unindexed
    assert sorted(table.revisions) == [0, 1]
    assert check_placement(table) == 3100
    more.write.format("qbeast").mode("overwrite").saveAsTable(table.name)
    assert check_placement(table) == 100


@pytest.mark.slow
def test_a_renamed_column_before_the_first_indexing(new_table, spark):
    table = new_table(
        "id BIGINT, x DOUBLE, y INT, s STRING", index="x,y",
        properties={"delta.columnMapping.mode": "name", "use.index.columnStats": '{"y_min": 0, "y_max": 5000}'},
    )  # fmt: skip
    table.sql("ALTER TABLE {t} RENAME COLUMN y TO z")
    table.sql("ALTER TABLE {t} DROP COLUMN id")
    table.append(numbers(spark, 300).selectExpr("x", "y z", "s")).index()
    assert check_placement(table) == 300
    assert table.revisions[1].transformations[1].maximum == 5000
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 's,x')")
    row = table.optimize()[0]
    assert (row.reason, row.state) == ("NOTHING_TO_DO", "skipped")
    assert "1 file is indexed as before use.index.columns was changed (x:linear, z:linear)" in row.message
    assert "revision_rewrite => true" in row.message
    table.optimize(revision_rewrite=True)
    assert "before use.index.columns" not in table.optimize()[0].message


def test_properties_of_other_systems_are_warned_about_once(spark, new_table, caplog, monkeypatch):
    table, asked, answer = new_table("x INT"), [], bridge._HANDLERS["check_metadata"]
    monkeypatch.setitem(bridge._HANDLERS, "check_metadata", lambda *a: asked.append(a) or answer(*a))

    def warnings(statement):
        caplog.clear()
        with caplog.at_level("WARNING", logger="sql_ext.bridge"):
            spark.sql(statement.format(t=table.name))
        return [record.getMessage() for record in caplog.records if record.name == "sql_ext.bridge"]

    (created,) = warnings("CREATE OR REPLACE TABLE {t} (x INT) USING delta OPTIONS (columnsToIndex 'x')")
    assert "'columnsToIndex' has no effect" in created
    (altered,) = warnings("ALTER TABLE {t} SET TBLPROPERTIES ('acid.data.retain.hours' = '72', 'Lifecycle' = '3')")
    assert "'Lifecycle' has no effect" in altered
    assert "Set 'use.retention.hours' instead." in altered
    assert spark.sql(f"SHOW TBLPROPERTIES {table.name}").where("key = 'acid.data.retain.hours'").count() == 1
    # One question each, and none for a statement that sets nothing of the kind.
    assert len(asked) == 2
    assert not warnings("ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'me', 'acid.data.retain.hours' = '72')")
    assert len(asked) == 2
    assert not warnings("CREATE OR REPLACE TABLE {t} (x INT) USING qbeast OPTIONS (columnsToIndex 'x')")
