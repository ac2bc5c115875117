"""The recipe for readers without Spark runs on a table of flights."""

import pytest
from pages import blocks

PAGE = "docs/howto/other-readers.md"


@pytest.mark.slow
def test_the_recipe(spark, new_table, capsys):
    table = new_table("carrier STRING, distance DOUBLE, dep_delay DOUBLE", index="carrier,distance,dep_delay")
    rows = "CASE id % 3 WHEN 0 THEN 'UA' WHEN 1 THEN 'DL' ELSE 'AA' END carrier, rand(1) * 3000 distance"
    table.append(spark.range(20_000).selectExpr(*rows.split(", "), "rand(2) * 60 dep_delay")).index()
    (code,) = [block.code for block in blocks(PAGE) if "recipe" in block.info.split()]
    names = {}
    exec(code.replace("/data/flights", str(table.path)), names)
    assert capsys.readouterr().out.startswith("1 ")
    assert len(names["data_frame"]) == names["arrow_table"].num_rows > 0
    assert set(names["data_frame"].carrier) <= {"UA", "DL"}
