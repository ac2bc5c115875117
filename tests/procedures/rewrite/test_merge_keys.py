"""A MERGE looks only at files that can have keys of its source; its result is that of Delta."""

from random import Random

import pytest
from statement_tables import COLUMNS, NO_VECTORS, note, pair, rows, run_on_both

FEW = "(SELECT * FROM VALUES (1490L, 1L, 1, 'a'), (1500L, 2L, 2, 'b'), (NULL, 3L, 0, 'c') AS s(id, x, p, s))"
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
BY_SOURCE = (
    "WHEN MATCHED THEN UPDATE SET s = 'x' WHEN NOT MATCHED BY SOURCE AND t.id % 40 = 1 THEN UPDATE SET s = 'away'"
)


@pytest.fixture(autouse=True)
def any_size(set_conf):
    """A job for the keys of a source pays on the smallest table."""
    set_conf("spark.qbeast.use.joins.bytes", "16b")


def merge(source, condition="t.id = s.id", clauses=UPSERT):
    return f"MERGE INTO {{t}} t USING {source} s ON {condition} {clauses}"


@pytest.fixture
def by_key(spark, new_table):
    """Two tables of the same rows, of which the first is indexed by the key."""
    data = rows(spark).persist()
    indexed = new_table(COLUMNS, index="id,p", cube_size=100, file_bytes=4_000, properties=NO_VECTORS)
    plain = new_table(COLUMNS, properties=NO_VECTORS)
    for table in (indexed, plain):
        table.append(data)
    data.unpersist()
    indexed.index()
    assert len(indexed.files) > 8
    return indexed, plain


def compared(indexed, plain, statement, set_conf):
    """Runs a statement on both tables, on the second one without the keys of its source."""
    set_conf("spark.qbeast.use.joins.enabled", "true")
    indexed.sql(statement)
    set_conf("spark.qbeast.use.joins.enabled", "false")
    plain.sql(statement)
    assert indexed.checksum() == plain.checksum()
    return note(indexed).get("files_with_keys")


def files_with(table, ranges):
    """How many files can have an id in one of the ranges, by their statistics; fewer than all."""
    bounds = [(file.stats["minValues"]["id"], file.stats["maxValues"]["id"]) for file in table.files]
    count = sum(any(low <= last and first <= high for first, last in ranges) for low, high in bounds)
    assert count < len(bounds)
    return count


def test_it_looks_at_files_with_its_keys_only(spark, by_key, new_table, set_conf):
    indexed, plain = by_key
    files = files_with(indexed, [(1490, 1490), (1500, 1500)])
    assert compared(indexed, plain, merge(FEW), set_conf) == files
    source = new_table(COLUMNS)
    source.append(spark.range(700, 760).selectExpr("id", "id AS x", "CAST(id % 3 AS INT) AS p", "'d' AS s"))
    files = files_with(indexed, [(700, 759)])
    assert compared(indexed, plain, merge(source.name), set_conf) == files
    # More keys than are compared one by one: their range.
    set_conf("spark.qbeast.use.joins.keys", "50")
    files = files_with(indexed, [(700, 759)])
    assert compared(indexed, plain, merge(source.name), set_conf) == files
    # Rows without a match are looked for in all files.
    assert compared(indexed, plain, merge(FEW, clauses=BY_SOURCE), set_conf) is None


def test_files_of_small_tables_are_all_looked_at(spark, new_table, set_conf):
    set_conf("spark.qbeast.use.joins.bytes", "1g")
    run_on_both(*pair(spark, new_table), merge("(SELECT id, id AS x, 1 AS p, 'e' AS s FROM range(700, 800))"))


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_plain_table_gains_by_statistics(spark, new_table, set_conf, vectors):
    properties = {"delta.enableDeletionVectors": vectors}
    tables = [new_table(COLUMNS, properties=properties) for _ in range(2)]
    for table in tables:
        for first in range(0, 3000, 300):
            table.append(
                spark.range(first, first + 300, numPartitions=1).selectExpr("id", "id AS x", "1 AS p", "'' AS s")
            )
    assert compared(*tables, merge(FEW), set_conf) == 2


CONDITIONS = (
    "t.id = s.id",
    "s.id = t.id AND t.p = s.p",
    "t.id = s.id AND t.x > 50000",
    "t.x = s.x",
    "CAST(t.p AS BIGINT) = s.x AND t.id = s.id",
    "t.id = s.id + 5",
    "t.id + 5 = s.id",
    "t.id <=> s.id",
    "t.id = s.id OR t.x = s.x",
    "t.s = s.s",
    "t.s = s.s COLLATE UTF8_LCASE",
    "CAST(t.id AS DOUBLE) = CAST(s.id AS DOUBLE)",
    "CAST(t.id AS INT) = CAST(s.id AS INT)",
    "t.id = s.id AND s.p = 1",
)
CLAUSES = (
    UPSERT,
    "WHEN NOT MATCHED THEN INSERT *",
    "WHEN MATCHED AND s.p = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET x = s.x",
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.p = 2 THEN INSERT *",
    BY_SOURCE,
)


def random_source(chance):
    kind, first, count = chance.randrange(4), chance.randrange(3200), chance.choice([0, 1, 5, 60, 400])
    columns = "id, id * 3 AS x, CAST(id % 3 AS INT) AS p, CAST(id AS STRING) AS s"
    if kind == 0:
        values = ", ".join(
            f"({chance.choice(['NULL', f'{key}L'])}, {key}L, {key % 3}, '{key}')" for key in range(first, first + count)
        )
        return f"(SELECT * FROM VALUES {values or '(NULL, 1L, 1, NULL)'} AS s(id, x, p, s))"
    if kind == 1:
        return f"(SELECT {columns} FROM range({first}, {first + count}))"
    if kind == 2:
        return f"(SELECT {columns} FROM range(0, 4000) WHERE id % {count + 7} = 3)"
    return f"(SELECT {columns} FROM {{source}} WHERE id % 5 = {chance.randrange(5)})"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_merges(spark, new_table, set_conf, seed):
    chance, restricted = Random(seed), 0
    vectors = {"delta.enableDeletionVectors": "true"} if seed % 2 else NO_VECTORS
    indexed, plain = pair(spark, new_table, properties=vectors)
    source = new_table("id BIGINT")
    source.append(spark.range(900, 1200))
    for _ in range(12):
        statement = merge(
            random_source(chance).replace("{source}", source.name), chance.choice(CONDITIONS), chance.choice(CLAUSES)
        )
        set_conf("spark.qbeast.use.joins.keys", chance.choice(["20", "50000"]))
        outcomes = []
        for table, enabled in ((indexed, "true"), (plain, "false")):
            set_conf("spark.qbeast.use.joins.enabled", enabled)
            try:
                outcomes.append(table.sql(statement))
            except Exception as error:  # noqa: BLE001 - both tables refuse it, or none
                outcomes.append(str(error)[:60])
        assert outcomes[0] == outcomes[1], statement
        assert indexed.checksum() == plain.checksum(), statement
        restricted += "files_with_keys" in indexed.commit_info(indexed.version).get("tags", {}).get("use.statement", "")
    assert restricted
