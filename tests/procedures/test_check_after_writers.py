"""``use.check`` finds no error in what each writer and each procedure leaves, whatever the columns are called."""

import pytest
from tables import NUMBERS, DeltaTable, numbers

import sql_ext

VECTORS = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}


def _call(table, procedure, **arguments):
    return sql_ext.call(table.spark, procedure, table=table.name, **arguments).collect()


def _errors(table):
    return [(r.check, r.path, r.message) for r in _call(table, "check", deep=True) if r.severity == "error"]


def _committed(rows):
    assert "committed" in {row.state for row in rows}, rows


def _plain_tags(table):
    return [tags for add in table.replayed()[0].values() if "revision" not in (tags := add.get("tags") or {})]


@pytest.fixture
def part_indexed(spark, new_table):
    """An indexed file, and twelve unindexed ones, of which one has deleted rows."""
    table = new_table(NUMBERS, index="x,y", properties=VECTORS).append(numbers(spark, 100)).index()
    for part in range(12):
        table.append(numbers(spark, 20, start=100 + 20 * part))
    table.sql("DELETE FROM {t} WHERE id >= 320 AND id % 3 > 0")
    return table


def test_merged_files_without_an_index_are_no_error(part_indexed):
    table = part_indexed
    _committed(table.optimize(strategy="SizeTieredClustering", options={"min_files": "4"}))
    merged = [tags for tags in _plain_tags(table) if "use.tier" in tags]
    assert merged
    assert not _errors(table)


@pytest.mark.slow
def test_no_writer_leaves_an_error(part_indexed):
    table, spark = part_indexed, part_indexed.spark
    _committed(_call(table, "compact", min_deleted_ratio=0.1))
    assert not _errors(table)
    _committed(table.optimize(strategy="StepConsolidation", options={"step_max_files": "3"}))
    assert _plain_tags(table)
    assert not _errors(table)
    for start in (420, 440):
        table.append(numbers(spark, 20, start=start))
    _committed(table.optimize(files=[f.path for f in table.unindexed[:2]], strategy="StepConsolidation"))
    assert not _errors(table)
    table.append(numbers(spark, 20, start=500)).append(numbers(spark, 20, start=510))
    _committed(_call(table, "compact", primary_key=["id"], order_by="x", ties="any"))
    assert not _errors(table)
    for start in (600, 620):
        table.append(numbers(spark, 20, start=start))
    plan = {row.plan_id for row in _call(table, "plan", store=True)}
    _committed(table.optimize(plan=plan.pop()))
    assert not _errors(table)
    numbers(spark, 50, start=700).write.format("qbeast").mode("append").saveAsTable(table.name)
    assert not _errors(table)
    table.sql("DELETE FROM {t} WHERE id % 7 = 0")
    _call(table, "purge", older_than="0 seconds", force=True)
    assert not _errors(table)
    before = table.checksum()
    table.optimize()
    assert not table.unindexed
    assert not _errors(table)
    _call(table, "drop_index")
    assert not _errors(table)
    assert table.checksum() == before


@pytest.mark.slow
def test_a_converted_table_has_no_error(spark, tmp_path):
    numbers(spark, 200, partitions=6).write.parquet(str(tmp_path / "t"))
    name = f"delta.`{tmp_path}/t`"
    sql_ext.call(spark, "index", table=f"parquet.`{tmp_path}/t`", columns="x,y", convert=True).collect()
    table = DeltaTable(spark, name)
    _committed(table.optimize(strategy="StepConsolidation", options={"step_max_files": "3"}))
    assert not _errors(table)
    table.optimize()
    assert not _errors(table)


NAMES = ("a,b", "c.d", "e`f", 'g"h', " i j ", "k[l](m){n}", "UpPer", "it's:q;r=t")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["name", "id"])
def test_every_procedure_knows_renamed_columns(spark, new_table, mode):
    """Each name is that of an indexed column once; the table is indexed again under the last two."""
    properties = {"delta.columnMapping.mode": mode, "use.insights.consumption.enabled": "false"}
    table = new_table(NUMBERS, index="x,s", cube_size=1000, file_bytes="4kb", properties=properties)
    table.append(numbers(spark, 300)).index()
    names = {"x": "x", "s": "s"}
    for x, s in zip(NAMES[::2], NAMES[1::2], strict=True):
        for column, name in {"x": x, "s": s}.items():
            table.sql(f"ALTER TABLE {{t}} RENAME COLUMN {_quoted(names[column])} TO {_quoted(name)}")
            names[column] = name
        assert not _errors(table), names
        _use_everything(table, x, s)
    start = 1000
    table.append(numbers(spark, 100, start).toDF("id", names["x"], "y", names["s"]))
    table.append(
        numbers(spark, 100, start + 100)
        .selectExpr("id", "x + 5 AS x", "y", "s")
        .toDF("id", names["x"], "y", names["s"])
    )
    table.optimize()
    assert len(table.revisions) > 1
    assert not table.unindexed
    assert not _errors(table)
    table.optimize(revision_rewrite=True)
    assert {f.revision for f in table.files} == {max(table.revisions)}
    assert not _errors(table)


def _quoted(name):
    return "`" + name.replace("`", "``") + "`"


def _use_everything(table, x, s):
    spark, name = table.spark, table.name
    information = _call(table, "clustering_information", columns=f"{_quoted(x)},{_quoted(s)}")
    assert information
    assert _call(table, "clustering_information")
    assert _call(table, "health")
    query = f"SELECT count(*) FROM {name} WHERE {_quoted(x)} < 0.5D AND {_quoted(s)} = 's1'"
    assert sql_ext.call(spark, "explain_skipping", query=query).collect()
    assert _call(table, "recommend", queries=[query])
    assert _call(table, "report")
    for virtual in ("revisions", "cubes", "blocks", "index_files", "optimizations"):
        assert spark.sql(f"SELECT * FROM {name}.{virtual}").collect()
    assert 0 < spark.sql(f"SELECT * FROM {name} TABLESAMPLE (50 PERCENT)").count() < 300
    assert spark.sql(query).first()[0] >= 0
    table.optimize(dry_run=True)
    table.optimize(strategy="StepConsolidation", options={"columns": _quoted(x), "amplification": "2"}, dry_run=True)
