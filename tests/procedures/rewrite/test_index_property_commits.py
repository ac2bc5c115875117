"""Which metadata commits carry the tag by which Delta lets concurrent writers pass."""

import pytest
from tables import NUMBERS, numbers

from procedures.calls.index import OPERATION as INDEX
from procedures.rewrite.layout_rewrite import REVISION_OPERATION as REVISION

TAG = "delta.identity.schemaUpdate"


def newest(table):
    info = table.commit_info(table.version)
    return info["operation"], TAG in info.get("tags", {})


@pytest.mark.slow
def test_commits_that_set_index_properties_alone_have_the_tag(spark, new_table):
    """Anything else that changes metadata, and every removal, still conflicts with writers in flight."""
    table = new_table(NUMBERS).append(numbers(spark, 200))
    assert newest(table) == ("WRITE", False)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='x')")
    assert newest(table) == ("SET TBLPROPERTIES", True)
    spark.sql(f"CALL use.index(table => '{table.name}', columns => 'x,y')")
    assert newest(table) == (INDEX, True)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.cubeSize'='1000', 'mine'='1')")
    assert newest(table) == ("SET TBLPROPERTIES", False)
    table.sql("ALTER TABLE {t} ADD COLUMNS (z INT)")
    assert newest(table) == ("ADD COLUMNS", False)
    table.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('use.index.cubeSize')")
    assert newest(table) == ("UNSET TBLPROPERTIES", False)
    table.index()
    assert newest(table) == ("USE OPTIMIZE", False)
    info = table.commit_info(table.version - 1)
    assert (info["operation"], info["operationParameters"]["revision"]) == (REVISION, "1")
    assert info["tags"] == {TAG: "true"}
    outside = numbers(spark, 10).selectExpr("id", "x", "y + 5000 AS y", "s", "1 AS z")
    outside.write.format("qbeast").mode("append").saveAsTable(table.name)
    assert newest(table) == ("WRITE", True)
    assert sorted(table.revisions) == [0, 1, 2]
    spark.sql(f"CALL use.drop_index(table => '{table.name}')")
    assert newest(table) == ("USE DROP INDEX", False)
    assert table.data.count() == 210
