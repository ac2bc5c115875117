"""More features of Delta tables on indexed ones: versions, clones, constraints, schema changes, checkpoints."""

import pytest
from placement import check_placement
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tables import DeltaTable, numbers

from sql_ext import call, read_report

COLUMNS = "id BIGINT, x DOUBLE, y INT, s STRING"
TENTH = "hash(x, y) < " + str(int(0.1 * 4294967295 - 2147483648))


def indexed(spark, new_table, columns=COLUMNS, **wishes):
    table = new_table(columns, index="x,y", cube_size=100, file_bytes="4kb", **wishes)
    return table.append(numbers(spark, 600)).index()


@pytest.mark.slow
def test_versions_and_restore(spark, new_table):
    table = indexed(spark, new_table)
    version, before = table.version, table.checksum()
    table.append(numbers(spark, 300, start=600))
    table.optimize(strategy="UnindexedFiles")
    old = spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version}")
    assert old.count() == 600
    box = old.where("x < 0.2 AND y < 200")
    assert box.count() == old.where("x + 0 < 0.2 AND y + 0 < 200").count()
    sample = spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version} TABLESAMPLE (10 PERCENT)")
    assert read_report(sample).weight_filters == 1
    assert {r.id for r in sample.collect()} == {r.id for r in old.where(TENTH).collect()}
    table.sql(f"RESTORE {{t}} TO VERSION AS OF {version}")
    assert table.checksum() == before
    assert check_placement(table) == 600
    assert call(spark, "check", table=table.name, deep=True).collect()[-1].severity == "ok"
    assert table.optimize(strategy="UnindexedFiles")[0].reason == "NOTHING_TO_DO"


@pytest.mark.slow
def test_a_shallow_clone_keeps_the_index(spark, new_table):
    table = indexed(spark, new_table)
    name = f"{table.name}_clone"
    spark.sql(f"CREATE TABLE {name} SHALLOW CLONE {table.name}")
    try:
        clone = DeltaTable(spark, name)
        assert clone.checksum() == table.checksum()
        sample = clone.data.sample(0.1)
        assert read_report(sample).weight_filters == 1
        assert {r.id for r in sample.collect()} == {r.id for r in table.data.where(TENTH).collect()}
        assert [r.severity for r in call(spark, "check", table=name, deep=True).collect()] == ["ok"]
        clone.append(numbers(spark, 50, start=600))
        clone.optimize(strategy="UnindexedFiles")
        assert (clone.data.count(), table.data.count()) == (650, 600)
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.slow
def test_columns_that_come_later_and_constraints(spark, new_table):
    table = indexed(spark, new_table)
    table.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)")
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?i)positive"):
        table.append(numbers(spark, 1).selectExpr("-1L id", "x", "y", "s"))
    more = numbers(spark, 200, start=600).selectExpr("*", "parse_json('{\"a\": 1}') v", "id * 2 doubled")
    more.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(table.name)
    before = table.data.selectExpr("sum(id)", "sum(doubled)", "sum(variant_get(v, '$.a', 'int'))", "count(*)").collect()
    report = table.optimize(strategy="UnindexedFiles")
    assert report[0].state == "committed"
    assert (
        table.data.selectExpr("sum(id)", "sum(doubled)", "sum(variant_get(v, '$.a', 'int'))", "count(*)").collect()
        == before
    )
    assert check_placement(table) == 800
    assert table.data.where("x < 0.1").count() == table.data.where("x + 0 < 0.1").count()


@pytest.mark.slow
def test_tags_survive_checkpoints(spark, new_table):
    for policy in ("classic", "v2"):
        table = indexed(spark, new_table, properties={"delta.checkpointPolicy": policy})
        before = {(f.path, f.blocks) for f in table.files}
        table.checkpoint()
        assert list((table.path / "_delta_log").glob("*.checkpoint*"))
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        rows = spark.table(f"{table.name}.blocks").collect()
        assert sorted((r.path, r.cube_id, r.element_count) for r in rows) == sorted(
            (path, b.cube_id, b.element_count) for path, blocks in before for b in blocks
        )
        assert check_placement(table) == 600
