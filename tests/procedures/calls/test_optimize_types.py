"""Every indexable type, with nulls and the values at the edges."""

import json

import pytest
from placement import check_placement

DOUBLES = "IF(id % 7 = 0, NULL, IF(id % 11 = 0, double('NaN'), IF(id % 13 = 0, double('Infinity'), id / 3D)))"
TYPES = {
    "tinyint": "CAST(id % 100 - 50 AS TINYINT)",
    "smallint": "CAST(id * 7 AS SMALLINT)",
    "int": "CAST(id * 1000003 AS INT)",
    "bigint": "id * 4611686018427387 - 4611686018427387904",
    "float": f"CAST({DOUBLES} AS FLOAT)",
    "double": DOUBLES,
    "decimal(10,2)": "CAST(id / 100D AS DECIMAL(10,2))",
    "decimal(38,0)": "CAST(concat(id, '00000000000000000000000000000') AS DECIMAL(38,0))",
    "date": "date_add(DATE'1901-01-01', CAST(id * 53 AS INT))",
    "timestamp": "timestamp_micros(id * 1000000000001 - 500000000000000)",
    "string": "IF(id % 5 = 0, '', concat('ä', id % 50))",
    "boolean": "id % 3 = 0",
    "timestamp_ntz": "timestampadd(SECOND, CAST(id * 100003 AS INT), TIMESTAMP_NTZ'1969-06-01 00:00:00.000001')",
    "binary": "CAST(concat('é', id % 90) AS BINARY)",
}
# The transformations that are not the default of a type, and are not tried elsewhere.
OTHERS = {
    "quantiles": ["smallint", "bigint", "float", "double", "decimal(10,2)", "date", "timestamp_ntz", "string"],
    "hashing": ["tinyint", "int", "bigint", "float", "decimal(38,0)", "date", "timestamp", "boolean"],
}  # fmt: skip


EDGES = {
    "double": [
        "CAST(NULL AS DOUBLE)",
        "double('NaN')",
        "IF(id % 2 = 0, double('Infinity'), double('-Infinity'))",
        "IF(id % 2 = 0, -0.0D, 0.0D)",
        "IF(id % 2 = 0, -1.7976931348623157E308D, 1.7976931348623157E308D)",
        "IF(id % 2 = 0, 4.9E-324D, 0D)",
    ],
    "float": [
        "IF(id % 2 = 0, float('NaN'), CAST(3.4028234663852886E38D AS FLOAT))",
        "float('-Infinity')",
        "CAST(NULL AS FLOAT)",
    ],
    "bigint": [
        "IF(id % 2 = 0, 9223372036854775807L, 9223372036854775806L)",
        "IF(id % 2 = 0, -9223372036854775807L - 1, 9223372036854775807L)",
        "7L",
    ],
    "string": ["CAST(NULL AS STRING)", "''", "IF(id % 2 = 0, repeat('x', 5000), '👩')"],
    "date": ["IF(id % 2 = 0, DATE'0001-01-01', DATE'9999-12-31')", "DATE'1969-12-31'"],
    "timestamp": [
        "IF(id % 2 = 0, TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP'9999-12-31 23:59:59.999999')",
        "IF(id % 2 = 0, TIMESTAMP'1969-12-31 23:59:59.999999', TIMESTAMP'1970-01-01 00:00:00.000001')",
    ],
    "decimal(38,0)": ["IF(id % 2 = 0, CAST(repeat('9', 38) AS DECIMAL(38,0)), CAST(-1 AS DECIMAL(38,0)))"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kinds", list(zip(list(TYPES)[::2], list(TYPES)[1::2], strict=True)))
def test_two_columns_of_the_types(spark, new_table, kinds, set_conf):
    set_conf("spark.sql.ansi.enabled", "false")
    table = new_table(f"a {kinds[0]}, b {kinds[1]}, id BIGINT", index="a,b", cube_size=100, file_bytes="2kb")
    values = [
        f"IF(id % {17 + i} = 0, NULL, {TYPES[k]}) {name}" for i, (k, name) in enumerate(zip(kinds, "ab", strict=True))
    ]
    table.append(spark.range(1000).selectExpr(*values, "id"))
    before = table.checksum()
    report = table.optimize()
    assert [(r.state, r.rows) for r in report] == [("committed", 1000)]
    assert table.checksum() == before
    assert check_placement(table) == 1000
    assert len(table.files) > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", EDGES)
def test_columns_of_edges_only(spark, new_table, kind):
    names = [f"c{i}" for i in range(len(EDGES[kind]))]
    table = new_table(", ".join(f"{n} {kind}" for n in names), index=",".join(names), cube_size=40)
    table.append(spark.range(200).selectExpr(*[f"{e} {n}" for n, e in zip(names, EDGES[kind], strict=True)]))
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    assert check_placement(table) == 200


@pytest.mark.slow
def test_a_constant_column_becomes_a_spread_one(spark, new_table):
    table = new_table("a DOUBLE, b INT, c STRING", index="a,b,c", cube_size=40)
    table.append(spark.range(200).selectExpr("CAST(NULL AS DOUBLE) a", "7 b", "CAST(NULL AS STRING) c")).index()
    table.append(spark.range(200).selectExpr("id / 2D a", "CAST(id AS INT) b", "'x' c")).index()
    assert check_placement(table) == 400
    assert table.data.where("a IS NULL").count() == 200
    assert table.data.where("b = 7").count() == 201


@pytest.mark.slow
@pytest.mark.parametrize("kind", OTHERS)
def test_other_transformations(spark, new_table, set_conf, kind):
    set_conf("spark.sql.ansi.enabled", "false")
    types = {f"c{i}": t for i, t in enumerate(OTHERS[kind])}
    table = new_table(
        ", ".join(f"{n} {t}" for n, t in types.items()), index=",".join(f"{n}:{kind}" for n in types), cube_size=100
    )
    values = [f"IF(id % {17 + i} = 0, NULL, {TYPES[t]}) {n}" for i, (n, t) in enumerate(types.items())]
    table.append(spark.range(600).selectExpr(*values))
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    assert check_placement(table) == 600
    assert {type(t).__name__ for t in table.revisions[1].transformations} <= {
        "quantiles": {"NumericQuantilesTransformation", "StringQuantilesTransformation"},
        "hashing": {"HashTransformation"},
    }[kind]
    # Data beyond the quantiles, and any hash, fits: no new revision.
    table.append(spark.range(600, 900).selectExpr(*values)).index()
    assert check_placement(table) == 900
    assert max(table.revisions) == 1


NESTED = "id BIGINT, s STRUCT<x: INT, `y.z`: STRING, deep: STRUCT<t: TIMESTAMP_NTZ>>, `s.x` DOUBLE"


@pytest.mark.slow
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_nested_fields(spark, new_table, mapping):
    # Only column mapping allows a dot in a name.
    columns, index = NESTED, "S.deep.T,s.y.z,s.x"
    if mapping == "none":
        columns, index = "id BIGINT, s STRUCT<x: INT, yz: STRING, deep: STRUCT<t: TIMESTAMP_NTZ>>", "S.deep.T,s.yz,s.x"
    table = new_table(columns, index=index, cube_size=50, properties={"delta.columnMapping.mode": mapping})
    inner = "'x', CAST(id AS INT), 'y', concat('w', id % 9), 'deep', named_struct('t', {})".format(
        "timestampadd(HOUR, CAST(id AS INT), TIMESTAMP_NTZ'2020-01-01 00:00:00')"
    )
    own = ["id", f"IF(id % 10 = 0, NULL, named_struct({inner})) s"]
    rows = spark.range(400).selectExpr(*own, *(["id / 4D `s.x`"] if mapping == "name" else []))
    spark.sql(f"INSERT INTO {table.name} SELECT * FROM {{rows}}", rows=rows)
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    assert check_placement(table) == 400
    revision = table.revisions[1]
    extensions = json.loads(table.replayed()[1]["configuration"]["use.index.extensions.1"])
    expected = {revision.columns[0]: "timestamp_ntz", revision.columns[1]: "string"}
    if mapping == "none":
        assert revision.columns == ("s.deep.t", "s.yz", "s.x")
        assert extensions == {**expected, "s.x": "int"}
    else:
        # A top-level column of that very name wins over the path.
        assert revision.transformers[2].data_type == "DoubleDataType"
        assert extensions == expected
        spark.sql(f"ALTER TABLE {table.name} RENAME COLUMN s.deep TO deeper")
    assert table.data.where("s.deep.t IS NULL" if mapping == "none" else "`s.x` < 10").count() == 40
    spark.sql(f"INSERT INTO {table.name} SELECT * FROM {{rows}}", rows=rows)
    table.index()
    assert check_placement(table) == 800
    assert max(table.revisions) == 1


def test_all_types_together(spark, new_table, set_conf):
    set_conf("spark.sql.ansi.enabled", "false")
    names = [f"c{i}" for i in range(len(TYPES))]
    columns = ", ".join(f"{n} {k}" for n, k in zip(names, TYPES, strict=True))
    table = new_table(columns, index=",".join(names), cube_size=200)
    rows = spark.range(600).selectExpr(*[f"{e} {n}" for n, e in zip(names, TYPES.values(), strict=True)])
    table.append(rows)
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    assert check_placement(table) == 600


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
def test_another_session_time_zone_indexes_alike(spark, new_table, set_conf, zone):
    table = new_table("t TIMESTAMP, d DATE", index="t,d", cube_size=100)
    table.append(
        spark.range(400).selectExpr("timestamp_millis(id * 86400000) t", "date_add(DATE'2020-01-01', int(id)) d")
    )
    set_conf("spark.sql.session.timeZone", zone)
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    assert check_placement(table) == 400
    found = table.data.where("d = DATE'2020-06-01'")
    assert found.count() == 1


@pytest.mark.slow
def test_odd_column_names(spark, new_table):
    table = new_table(
        "`a b` BIGINT, `c``d` STRING, `ä.ö` INT", index="a b", properties={"delta.columnMapping.mode": "name"}
    )
    table.append(spark.range(500).selectExpr("id `a b`", "'x' `c``d`", "1 `ä.ö`"))
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='a b,ä.ö,c`d')")
    table.index()
    assert check_placement(table) == 500
    assert table.data.where("`a b` = 7").count() == 1


@pytest.mark.slow
def test_a_path_that_needs_quotes(spark, tmp_path):
    path = tmp_path / "it's a %20 `path`"
    spark.range(100).selectExpr("id a").write.format("delta").save(str(path))
    quoted = str(path).replace("`", "``")
    spark.sql(f"ALTER TABLE delta.`{quoted}` SET TBLPROPERTIES ('use.index.columns'='a')")
    assert spark.sql(f'CALL use.optimize("delta.`{quoted}`")').collect()[0].state == "committed"
    assert spark.sql(f'CALL use.optimize("{path}")').collect()[0].reason == "NOTHING_TO_DO"
