"""``use.check`` finds no error in merged files without an index, and procedures know renamed columns."""

import pytest
from tables import NUMBERS, DeltaTable, numbers

import sql_ext


def _call(table, procedure, **arguments):
    return sql_ext.call(table.spark, procedure, table=table.name, **arguments).collect()


def _errors(table):
    return [(r.check, r.path, r.message) for r in _call(table, "check", deep=True) if r.severity == "error"]


def _committed(rows):
    assert "committed" in {row.state for row in rows}, rows


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


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["name", "id"])
def test_procedures_know_renamed_columns(spark, new_table, mode):
    properties = {"delta.columnMapping.mode": mode}
    table = new_table(NUMBERS, index="x,s", cube_size=1000, file_bytes="4kb", properties=properties)
    table.append(numbers(spark, 300)).index()
    for column, name in {"x": "a,b", "s": "c.d"}.items():
        table.sql(f"ALTER TABLE {{t}} RENAME COLUMN {column} TO {_quoted(name)}")
    assert not _errors(table)
    x, s = "`a,b`", "`c.d`"
    assert _call(table, "clustering_information", columns=f"{x},{s}")
    assert _call(table, "clustering_information")
    assert _call(table, "health")
    query = f"SELECT count(*) FROM {table.name} WHERE {x} < 0.5D AND {s} = 's1'"
    assert sql_ext.call(spark, "explain_skipping", query=query).collect()
    assert _call(table, "recommend", queries=[query])
    assert _call(table, "report")


def _quoted(name):
    return "`" + name.replace("`", "``") + "`"
