"""``<table>.optimizations`` in all its spellings, and ``use_catalog``."""

import pytest
from pyspark.errors import AnalysisException
from pyspark_test import assert_pyspark_df_equal
from tables import NUMBERS, numbers

from catalog.history.event_store import optimizations

A6 = [
    ("optimization_name", "string"),
    ("write_id", "string"),
    ("table_id", "string"),
    ("revision_id", "bigint"),
    ("started_at", "bigint"),
    ("finished_at", "bigint"),
    ("process_time_ms", "bigint"),
]
STATS = (
    "struct<files:array<string>,file_levels:array<bigint>,element_count:bigint,bytes:bigint,num_files:bigint,"
    "num_cubes:bigint,num_blocks:bigint,avg_num_blocks_per_file:double,avg_block_element_count_per_file:double>"
)
A6 += [("input_files_stats", STATS), ("output_files_stats", STATS)]


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Two optimizations: the first indexing, and an append."""
    made = shared_table(NUMBERS, index="x,y", cube_size=200, file_bytes="12kb").append(numbers(spark, 2000))
    made.optimize(max_iterations=5)
    made.append(numbers(spark, 500, start=2000))
    made.optimize(strategy="UnindexedFiles")
    return made


def _spellings(table):
    name = table.name.removeprefix("default.")
    return {
        "name": f"{name}.optimizations",
        "database": f"default.{name}.optimizations",
        "three parts": f"spark_catalog.default.{name}.optimizations",
        "use_catalog": f"use_catalog.spark_catalog.default.{name}.optimizations",
        "path": f"delta.`{table.path}`.optimizations",
        "path in the catalog": f"spark_catalog.delta.`{table.path}`.optimizations",
        "path in use_catalog": f"use_catalog.spark_catalog.delta.`{table.path}`.optimizations",
        "upper case": f"DEFAULT.{name.upper()}.OPTIMIZATIONS",
    }


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize(
    "spelling",
    [
        "name",
        "database",
        "three parts",
        "use_catalog",
        "path",
        "path in the catalog",
        "path in use_catalog",
        "upper case",
    ],
)
def test_every_spelling_gives_the_same_rows(spark, table, spelling):
    found = spark.sql(f"SELECT * FROM {_spellings(table)[spelling]}")
    assert found.count() == 2
    assert_pyspark_df_equal(found, optimizations(table.managed), check_column_names=True)


def test_columns_are_those_of_the_reference_and_the_version(spark, table):
    found = spark.table(f"{table.name}.optimizations")
    assert found.dtypes[:10] == [*A6, ("version", "bigint")]


@pytest.mark.slow
def test_times_have_a_zone_whatever_timestamp_means_in_the_session(spark, table):
    """All tables and results with times, in a session that takes TIMESTAMP for a time without a zone."""
    other = spark.newSession()
    other.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    name = table.name
    for query in (
        *(f"SELECT * FROM {name}.{each}" for each in ("optimizations", "ingestion", "consumption", "plans")),
        *(f"SELECT * FROM use_catalog.system_lake_tables.{each}" for each in ("metastore_summary", "fleet")),
        f"CALL use.status('{name}')",
    ):
        found = other.sql(query)
        assert {kind for _, kind in found.dtypes if "timestamp" in kind} == {"timestamp"}, query
        rows = found.collect()
        assert "metastore_summary" in query or rows == spark.sql(query).collect(), query


def test_events_tell_what_was_done(spark, table):
    newest, first = spark.table(f"{table.name}.optimizations").collect()
    assert newest.version == table.version > first.version
    for event in (newest, first):
        assert event.optimization_name == "UnindexedFiles"
        assert event.revision_id >= 1
        assert event.finished_at - event.started_at == event.process_time_ms >= 0
        assert (event.kind, event.trigger, event.state, event.error) == ("optimize", "call", "committed", None)
        inputs, outputs = event.input_files_stats, event.output_files_stats
        assert sorted(inputs.files) == sorted(table.removed(event.version))
        assert sorted(outputs.files) == sorted(a["path"] for a in table.added(event.version))
        assert outputs.bytes == sum(a["size"] for a in table.added(event.version))
        assert inputs.element_count == outputs.element_count == (2000 if event is first else 500)
        assert set(inputs.file_levels) == {-1}
        assert min(outputs.file_levels) >= 0
        assert outputs.num_blocks >= outputs.num_cubes >= 1
        assert outputs.num_files == len(outputs.files) == len(outputs.file_levels)
    assert first.parameters["max_iterations"] == "5"
    assert newest.parameters["strategy"] == "UnindexedFiles"
    assert newest.write_id != first.write_id
    assert newest.table_id == table.sql("DESCRIBE DETAIL {t}")[0].id


@pytest.mark.slow
def test_filters_projections_and_joins(spark, table):
    name = f"{table.name}.optimizations"
    assert spark.sql(f"SELECT version FROM {name} WHERE version = {table.version}").count() == 1
    fields = spark.sql(f"SELECT count(*) n, max(input_files_stats.bytes) b, max(revision_id) r FROM {name}").collect()[
        0
    ]
    whole = [r.input_files_stats for r in spark.table(name).collect()]
    assert (fields.n, fields.b, fields.r) == (2, max(stats.bytes for stats in whole), 1)
    joined = spark.sql(f"SELECT a.version FROM {name} a JOIN {name} b ON a.write_id = b.write_id")
    assert joined.count() == 2
    exploded = spark.sql(f"SELECT explode(output_files_stats.files) f FROM {name} WHERE reason = 'UNINDEXED'")
    assert exploded.count() > 2


def test_a_table_without_optimizations_has_no_rows(spark, new_table):
    plain = new_table(NUMBERS)
    found = spark.table(f"{plain.name}.optimizations")
    assert found.count() == 0
    assert found.dtypes[:10] == [*A6, ("version", "bigint")]


@pytest.mark.parametrize(
    "name",
    [
        "default.no_such_table.optimizations",
        "use_catalog.spark_catalog.default.nothing.optimizations",
        "no_such_table.optimisations",
        "default.no_such_table",
    ],
)
def test_what_is_not_there(spark, table, name):
    with pytest.raises(AnalysisException) as missing:
        spark.sql(f"SELECT * FROM {name}").collect()
    assert missing.value.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")


def test_mistyped_virtual_tables_are_refused_with_the_nearest_name(spark, table):
    short = table.name.rpartition(".")[2]
    for name in (
        table.name,
        short,
        f"spark_catalog.{table.name}",
        f"delta.`{table.path}`",
        f"use_catalog.spark_catalog.{table.name}",
    ):
        with pytest.raises(AnalysisException) as unknown:
            spark.sql(f"SELECT * FROM {name}.Optimisations")
        assert unknown.value.getCondition() == "USE_UNKNOWN_VIRTUAL_TABLE"
        assert "no virtual table 'Optimisations'. Did you mean optimizations?" in str(unknown.value)
    assert not spark.catalog.tableExists(f"{short}.optimisations")
    spark.sql(f"DROP TABLE IF EXISTS {short}.optimisations")


def test_a_database_of_the_name_of_a_table_has_tables_of_its_own(spark, table):
    short = table.name.rpartition(".")[2]
    spark.sql(f"CREATE DATABASE {short}")
    try:
        with pytest.raises(AnalysisException) as missing:
            spark.sql(f"SELECT * FROM {short}.optimizations")
        assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        spark.sql(f"CREATE TABLE IF NOT EXISTS {short}.optimizations (id INT) USING delta")
        assert spark.table(f"{short}.optimizations").columns == ["id"]
        assert spark.table(f"{table.name}.optimizations").count() == 2
        spark.sql(f"ALTER TABLE {short}.optimizations ADD COLUMN x INT")
        spark.sql(f"CREATE OR REPLACE TABLE {short}.optimizations (id INT, y INT) USING delta")
        spark.sql(f"ALTER TABLE {short}.optimizations RENAME TO {short}.revisions")
        assert spark.table(f"{short}.revisions").columns == ["id", "y"]
        spark.sql(f"DROP TABLE {short}.revisions")
        assert not spark.catalog.tableExists(f"{short}.revisions")
    finally:
        spark.sql(f"DROP DATABASE {short} CASCADE")


def test_names_in_a_view_are_of_its_own_database(spark):
    """The current database has a table of the same name; the database of the view needs backquotes."""
    try:
        for database in ("`2024`", "other"):
            spark.sql(f"CREATE DATABASE {database}")
            spark.sql(f"USE {database}")
            spark.sql("CREATE TABLE flights (id INT) USING delta TBLPROPERTIES ('use.index.columns' = 'id')")
            if database != "other":
                spark.sql("INSERT INTO flights VALUES (1)")
                spark.sql("CALL use.optimize('flights')")
            spark.sql("CREATE VIEW ops AS SELECT flights.optimizations.version FROM flights.optimizations")
            assert spark.table("flights.optimizations").count() == spark.table("ops").count() == (database != "other")
        assert spark.table("`2024`.ops").count() == 1
        # Spark keeps the relations of a query by their names.
        for first, second in (("flights.optimizations", "`2024`.ops"), ("other.ops", "`2024`.ops")):
            assert spark.sql(f"SELECT version FROM {first} UNION ALL SELECT version FROM {second}").count() == 1
    finally:
        spark.sql("USE default")
        for database in ("`2024`", "other"):
            spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")


def test_one_name_in_the_catalog_of_virtual_tables_is_no_table(spark):
    with pytest.raises(AnalysisException) as missing:
        spark.sql("SELECT * FROM use_catalog.nothing")
    assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_only_delta_tables_have_virtual_tables(spark, table):
    spark.sql(f"CREATE VIEW default.view_of_table AS SELECT * FROM {table.name}")
    spark.sql(f"CREATE TEMPORARY VIEW temporary_view AS SELECT * FROM {table.name}")
    spark.sql("CREATE TABLE default.parquet_table (a INT) USING parquet")
    try:
        for name, code in (
            ("default.view_of_table", "USE_NOT_A_TABLE"),
            ("view_of_table", "USE_NOT_A_TABLE"),
            ("temporary_view", "USE_NOT_A_TABLE"),
            ("default.parquet_table", "USE_NOT_A_DELTA_TABLE"),
        ):
            with pytest.raises(AnalysisException) as refused:
                spark.sql(f"SELECT * FROM {name}.consumption")
            assert refused.value.getCondition() == code
    finally:
        spark.sql("DROP VIEW default.view_of_table")
        spark.sql("DROP VIEW temporary_view")
        spark.sql("DROP TABLE default.parquet_table")


@pytest.mark.parametrize("name", ["{t}.optimizations", "use_catalog.spark_catalog.{t}.optimizations"])
def test_virtual_tables_are_read_only(spark, table, name):
    for statement, condition in (
        ("INSERT INTO {n} SELECT * FROM {n}", "USE_NOT_SUPPORTED"),
        ("DELETE FROM {n}", "USE_NOT_SUPPORTED"),
        ("UPDATE {n} SET state = 'x'", "USE_NOT_SUPPORTED"),
        ("DROP TABLE {n}", ""),
        ("ALTER TABLE {n} SET TBLPROPERTIES ('a'='b')", ""),
    ):
        with pytest.raises(AnalysisException) as refused:
            spark.sql(statement.format(n=name.format(t=table.name)))
        assert condition in (refused.value.getCondition() or ""), statement
    assert spark.table(f"{table.name}.optimizations").count() == 2


@pytest.mark.quick_sample(4)
@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE {n}",
        "DROP TABLE IF EXISTS {n}",
        "DROP TABLE {n} PURGE",
        "ALTER TABLE {n} ADD COLUMN z INT",
        "ALTER TABLE {n} SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE {n} RENAME TO default.made_up",
        "CREATE OR REPLACE TABLE {n} (id INT) USING delta",
        "REPLACE TABLE {n} (id INT) USING delta",
        "CREATE OR REPLACE TABLE {n} USING delta AS SELECT 1 AS id",
        "CREATE OR REPLACE TABLE {n} (id INT) USING qbeast",
    ],
)
def test_statements_that_change_tables_refuse_virtual_tables(spark, table, statement):
    name = table.name.rpartition(".")[2] + ".optimizations"
    with pytest.raises(AnalysisException, match="is not available for the virtual table") as refused:
        spark.sql(statement.format(n=name))
    assert (refused.value.getCondition(), refused.value.getSqlState()) == ("USE_NOT_SUPPORTED", "0A000")
    assert spark.table(f"{table.name}.optimizations").count() == 2


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE use_catalog.spark_catalog.{t} SET TBLPROPERTIES ('use.index.columns'='x')",
        "ALTER TABLE use_catalog.spark_catalog.{t} ADD COLUMN z INT",
        "DROP TABLE use_catalog.spark_catalog.{t}",
        "CREATE TABLE use_catalog.spark_catalog.default.made_up (a INT)",
        "CREATE NAMESPACE use_catalog.made_up",
        "DROP NAMESPACE use_catalog.spark_catalog",
        "SELECT * FROM use_catalog.spark_catalog.{t}",
        "SELECT count(*) FROM {t} WHERE EXISTS (SELECT 1 FROM use_catalog.spark_catalog.{t})",
        "INSERT INTO use_catalog.spark_catalog.{t} SELECT * FROM {t}",
        "INSERT OVERWRITE use_catalog.spark_catalog.{t} SELECT * FROM {t}",
        "DELETE FROM use_catalog.spark_catalog.{t}",
        "UPDATE use_catalog.spark_catalog.{t} SET x = 1",
        "MERGE INTO use_catalog.spark_catalog.{t} a USING {t} b ON a.x = b.x WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE use_catalog.spark_catalog.{t}",
        "SHOW TABLES IN use_catalog.spark_catalog.default",
        "SHOW NAMESPACES IN use_catalog.spark_catalog",
        "CREATE OR REPLACE TABLE use_catalog.spark_catalog.{t} AS SELECT 1 AS x",
    ],
)
def test_use_catalog_changes_nothing(spark, table, statement):
    before = table.state()
    with pytest.raises(AnalysisException) as refused:
        spark.sql(statement.format(t=table.name))
    assert (refused.value.getCondition(), refused.value.getSqlState()) == ("USE_NOT_SUPPORTED", "0A000")
    assert table.state() == before


def test_use_catalog_describes_a_table(spark, table):
    rows = spark.sql(f"DESCRIBE TABLE use_catalog.spark_catalog.{table.name}").collect()
    assert [r.col_name for r in rows][:4] == ["id", "x", "y", "s"]


def test_a_column_named_like_a_virtual_table(spark, new_table):
    table = new_table("optimizations STRUCT<version: INT>, a INT")
    spark.sql("SELECT named_struct('version', 3) optimizations, 1 a").write.mode("append").format("delta").saveAsTable(
        table.name
    )
    name = table.name.removeprefix("default.")
    assert spark.sql(f"SELECT {name}.optimizations.version v FROM {table.name}").collect()[0].v == 3


def test_names_are_those_of_no_language(spark, new_table):
    """In Turkish, the small letter of I is ı."""
    name, locale = new_table("id BIGINT").name, spark._jvm.java.util.Locale
    before = locale.getDefault()
    locale.setDefault(locale("tr"))
    try:
        assert spark.sql(f"SELECT * FROM {name}.OPTIMIZATIONS").count() == 0
        assert spark.sql(f"SELECT * FROM use_catalog.spark_catalog.{name}.OPTIMIZATIONS").count() == 0
    finally:
        locale.setDefault(before)
