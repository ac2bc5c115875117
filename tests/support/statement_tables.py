"""Statements that rewrite rows, on an indexed table and on a plain one with the same rows."""

import json

from placement import check_placement

COLUMNS = "id BIGINT, x BIGINT, p INT, s STRING"
NO_VECTORS = {"delta.enableDeletionVectors": "false"}
# Counted by Delta for each statement, and the same on both tables.
METRICS = (
    "numDeletedRows",
    "numUpdatedRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
)
CHANGES = "(SELECT id, id * 2 AS x, CAST(id % 3 AS INT) AS p, 'changed' AS s FROM range(2900, 3100))"
STATEMENTS = {
    "delete": "DELETE FROM {t} WHERE id % 50 = 7",
    "delete of whole files": "DELETE FROM {t} WHERE id < 1500 OR id % 50 = 8",
    "update": "UPDATE {t} SET s = 'updated' WHERE id % 50 = 9",
    "update of an indexed column": "UPDATE {t} SET x = x + 100000 WHERE id % 50 = 11",
    "merge": f"MERGE INTO {{t}} t USING {CHANGES} s ON t.id = s.id WHEN MATCHED AND s.id % 5 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "merge without a match": f"MERGE INTO {{t}} t USING {CHANGES} s ON t.id = s.id + 100000 "
    "WHEN NOT MATCHED THEN INSERT *",
    "merge of what is not in the source": f"MERGE INTO {{t}} t USING {CHANGES} s ON t.id = s.id "
    "WHEN NOT MATCHED BY SOURCE AND t.id % 40 = 1 THEN UPDATE SET s = 'away'",
}


def rows(spark, first=0, last=3000):
    return spark.range(first, last, numPartitions=3).selectExpr(
        "id", "CAST(rand(3) * 100000 AS BIGINT) AS x", "CAST(id % 3 AS INT) AS p", "CAST(id AS STRING) AS s"
    )


def pair(spark, new_table, *, columns=COLUMNS, tail="", properties=NO_VECTORS, names=("id", "x", "p", "s")):
    """Two tables of the same rows, of which the first is indexed."""
    data = rows(spark).select(*names).persist()
    indexed = new_table(columns, index="x,id", cube_size=300, file_bytes=8_000, tail=tail, properties=properties)
    plain = new_table(columns, tail=tail, properties=properties)
    for table in (indexed, plain):
        table.append(data)
    indexed.index()
    assert len(indexed.files) > 3
    data.unpersist()
    return indexed, plain


def metrics_of(table):
    info = table.commit_info(table.version)
    return {name: info["operationMetrics"].get(name) for name in METRICS if name in info["operationMetrics"]}


def note(table):
    """What the newest commit says of the statement."""
    return json.loads(table.commit_info(table.version)["tags"]["use.statement"])


def check_copied(table):
    """Delta counts each row once that a statement copies."""
    metrics = table.commit_info(table.version)["operationMetrics"]
    counted = [int(metrics[name]) for name in ("numCopiedRows", "numTargetRowsCopied") if name in metrics]
    changed = ("numUpdatedRows", "numTargetRowsUpdated", "numTargetRowsInserted")
    added = sum(json.loads(add["stats"])["numRecords"] for add in table.added(table.version))
    if not any(add.get("deletionVector") for add in table.added(table.version)):
        assert sum(counted) + sum(int(metrics.get(name, 0)) for name in changed) == added


def run_on_both(indexed, plain, statement):
    indexed.sql(statement)
    plain.sql(statement)
    assert indexed.checksum() == plain.checksum()
    assert metrics_of(indexed) == metrics_of(plain)
    check_copied(indexed)
    assert note(indexed) == {"repeats": 0, "plain_files": {}}, note(indexed)


def check_indexed(table):
    assert not table.unindexed
    assert check_placement(table) >= table.data.count()
    assert [row.severity for row in table.spark.sql(f"CALL use.check('{table.name}')").collect()] == ["ok"]
