"""One adviser: ``doctor``, ``health``, ``recommend`` and ``explain_skipping`` say the same, and following it ends."""

import pytest
from tables import NUMBERS, numbers

import sql_ext
from procedures.insight.health.remedy import Remedy
from sql_ext.commands.doctor_checks.table_setup import TableFacts, table_findings

VECTORS = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "1000"}
NOTHING = "Nothing to do: no step would lower what reads cost."
ORDER = "Do in this order: "


def small_files(spark, new_table, set_conf):
    table = new_table(NUMBERS)
    numbers(spark, 3_000).repartition(300).write.format("delta").mode("append").saveAsTable(table.name)
    return table


def fresh_index(spark, new_table, set_conf):
    return new_table(NUMBERS, index="x,y", cube_size=1_000).append(numbers(spark, 4_000)).index()


def many_appends(spark, new_table, set_conf):
    table = fresh_index(spark, new_table, set_conf)
    for first in range(4_000, 7_000, 1_000):
        table.append(numbers(spark, 1_000, first))
    return table


def many_deletes(spark, new_table, set_conf):
    table = new_table(NUMBERS, properties=VECTORS).append(numbers(spark, 4_000))
    table.sql("DELETE FROM {t} WHERE id % 2 = 0")
    return table


def partitioned(spark, new_table, set_conf):
    table = new_table("id BIGINT, p INT", tail="PARTITIONED BY (p)")
    for first in range(0, 240, 40):
        table.append(spark.range(first, first + 40, 1, 1).selectExpr("id", "CAST(id % 2 AS INT) AS p"))
    return table


def clustered(spark, new_table, set_conf):
    table = new_table(NUMBERS, tail="CLUSTER BY (id)")
    table.append(numbers(spark, 1_000).repartition(9), files=9)
    return table


def clustered_with_index(spark, new_table, set_conf):
    table = clustered(spark, new_table, set_conf)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'x')")
    return table


def one_tiny_file(spark, new_table, set_conf):
    return new_table(NUMBERS).append(numbers(spark, 10))


def long_log(spark, new_table, set_conf):
    table = new_table(NUMBERS, properties={"delta.checkpointInterval": "1000"}).append(numbers(spark, 10))
    for n in range(55):
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('x' = '" + str(n) + "')")
    return table


def without_statistics(spark, new_table, set_conf):
    set_conf("spark.databricks.delta.stats.collect", "false")
    table = new_table(NUMBERS).append(numbers(spark, 10))
    set_conf("spark.databricks.delta.stats.collect", "true")
    return table


def nothing_indexed(spark, new_table, set_conf):
    return new_table(NUMBERS, index="x,y", cube_size=1_000).append(numbers(spark, 4_000))


KINDS = {
    many_appends: ["OPTIMIZE"],
    small_files: ["MERGE"],
    one_tiny_file: [],
    clustered_with_index: ["CLUSTERING", "OPTIMIZE"],
    fresh_index: [],
    many_deletes: ["DELETES"],
    partitioned: ["MERGE"],
    clustered: ["MERGE"],
    long_log: ["LOG"],
    without_statistics: ["STATISTICS"],
    nothing_indexed: ["OPTIMIZE"],
}


def advised(spark, name, where="id = 7"):
    """The statements of the four, in their order, and the codes of the steps."""
    facts = TableFacts.of(spark, name)
    doctor = [step.statement for step in facts.steps]
    first = table_findings(facts)[-1]
    assert doctor[:1] == ([first.advice] if doctor else []), "what doctor says to do first"
    total, *parts = sql_ext.call(spark, "health", table=name).collect()
    assert total.advice == (doctor[0] if doctor else None)
    assert {part.advice for part in parts if part.advice} <= set(doctor)
    query = f"SELECT * FROM {name} WHERE {where}"
    (best, *_) = sql_ext.call(spark, "recommend", table=name, queries=[query]).collect()
    explained = sql_ext.call(spark, "explain_skipping", query=query).where("item = 'ADVICE'").collect()
    if not doctor:
        assert [row.message for row in explained] == [NOTHING]
    else:
        assert all(row.message.endswith(statement) for row, statement in zip(explained, doctor, strict=True))
        assert [row.bytes for row in explained] == [step.saved_bytes for step in facts.steps]
    measured = [] if NOTHING in best.message else best.message.partition(ORDER)[2].removesuffix(".").split("; ")
    return doctor, measured, [step.advice.remedy.value for step in facts.steps]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_four_agree(spark, new_table, set_conf, kind):
    table = kind(spark, new_table, set_conf)
    doctor, measured, codes = advised(spark, table.name)
    assert codes == KINDS[kind]
    assert measured == doctor
    assert all(Remedy(code) for code in codes)


@pytest.mark.slow
def test_a_measured_index_replaces_what_only_merges(spark, new_table):
    """Selective queries on a column that is not indexed, over files that do not follow it."""
    table = new_table(NUMBERS, file_bytes="40kb")
    numbers(spark, 20_000).repartition(40, "y").write.format("delta").mode("append").saveAsTable(table.name)
    doctor, measured, codes = advised(spark, table.name, "x < 0.05")
    assert codes == ["MERGE"]
    assert [statement.partition("(")[0] for statement in measured] == ["CALL use.index"]
    assert doctor != measured
    queries = [f"SELECT * FROM {table.name} {rest}" for rest in ("WHERE x < 0.05", "TABLESAMPLE (15 PERCENT)")]
    (best, *_) = sql_ext.call(spark, "recommend", table=table.name, queries=queries).collect()
    assert "SET TBLPROPERTIES ('use.index.sampleFractions' = '0.15')" in best.message
    spark.sql(measured[0])
    doctor, measured, codes = advised(spark, table.name, "x < 0.05")
    assert (codes, measured) == (["OPTIMIZE"], doctor)


@pytest.mark.slow
def test_following_the_advice_ends(spark, new_table):
    """A neglected table: small appends, deletes, a long log; each step is what doctor names first."""
    table = new_table(NUMBERS, index="x,y", cube_size=500, file_bytes="8kb", properties=VECTORS)
    for first in range(0, 6_000, 100):
        table.append(numbers(spark, 100, first))
    table.sql("DELETE FROM {t} WHERE id % 3 = 0")
    before = table.data.selectExpr("count(*)", "sum(CAST(xxhash64(*) AS DECIMAL(20)))").first()
    followed = []
    while steps := TableFacts.of(spark, table.name).steps:
        followed.append(steps[0].statement)
        assert len(followed) <= 6, followed
        spark.sql(steps[0].statement)
    print(followed)
    assert table_findings(TableFacts.of(spark, table.name))[-1].message.startswith(("nothing to do", "automatic"))
    assert table.data.selectExpr("count(*)", "sum(CAST(xxhash64(*) AS DECIMAL(20)))").first() == before


@pytest.mark.slow
def test_other_columns_are_advised_until_their_files_follow(spark, new_table):
    table = fresh_index(spark, new_table, None)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'id')")
    doctor, measured, codes = advised(spark, table.name)
    assert (codes, measured) == (["REWRITE"], doctor)
    spark.sql(doctor[0])
    assert advised(spark, table.name)[0] == []
