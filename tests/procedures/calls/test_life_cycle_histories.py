"""Random histories of plain writes, clustering and compaction, against rows that are kept by hand in Python."""

import random
from collections import Counter

import pytest

import sql_ext

pytestmark = pytest.mark.slow

SCHEMA = "id BIGINT, p STRING, v BIGINT"
VECTORS, ROW_IDS = "delta.enableDeletionVectors", "delta.enableRowTracking"
OTHERS = {ROW_IDS: "true", "delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
PARTITIONS = ("a b", "ä/c=1", "50%", None)


class History:
    """A table, and the rows that it must have."""

    def __init__(self, spark, new_table, chance):
        self.spark, self.chance = spark, chance
        self.properties = {VECTORS: "true"} | {k: v for k, v in OTHERS.items() if chance.random() < 0.5}
        self.is_indexed = chance.random() < 0.4
        self.table = new_table(
            SCHEMA,
            index="id,v" if self.is_indexed else None,
            cube_size=20 if self.is_indexed else None,
            properties=self.properties,
            tail="PARTITIONED BY (p)" if chance.random() < 0.6 else "",
        )
        self.rows, self.next_id = Counter(), 0

    def append(self):
        count = self.chance.choice((1, 5, 40))
        numbers = range(self.next_id, self.next_id + count)
        rows = [(n, self.chance.choice(PARTITIONS), self.chance.choice((None, n, -n))) for n in numbers]
        self.next_id += count
        self.rows.update(rows)
        self.table.append(self.spark.createDataFrame(rows, SCHEMA), files=self.chance.choice((1, 2)))

    def delete(self):
        part = self.chance.randrange(5)
        self.table.sql(f"DELETE FROM {{t}} WHERE id % 5 = {part}")
        self.rows = Counter({row: n for row, n in self.rows.items() if row[0] % 5 != part})

    def update(self):
        part = self.chance.randrange(4)
        self.table.sql(f"UPDATE {{t}} SET v = 7 WHERE id % 4 = {part}")
        self.rows = Counter((n, p, 7 if n % 4 == part else v) for n, p, v in self.rows.elements())

    def cluster(self):
        options = {"min_files": self.chance.choice(("2", "4"))}
        if self.chance.random() < 0.3:
            options["isolate_bytes"] = "3000"
        self.table.optimize(strategy="SizeTieredClustering", options=options, parallelism=self.chance.choice((1, 2)))

    def compact(self):
        ratio = self.chance.choice((0.0, 0.1, 0.5))
        sql_ext.call(self.spark, "compact", table=self.table.name, min_deleted_ratio=ratio).collect()

    def index(self):
        if self.is_indexed:
            self.table.optimize()

    def step(self):
        writes, maintenance = (self.append, self.append, self.delete, self.update), (self.cluster, self.compact)
        chosen = self.chance.choice((*writes, *maintenance, *maintenance, self.index))
        if chosen in writes:
            chosen()
        else:
            before, ids = self.table.version, self.row_ids()
            chosen()
            assert self.row_ids() == ids
            for version in range(before + 1, self.table.version + 1):
                assert not any(added["dataChange"] for added in self.table.added(version))
        assert rows_of(self.table.data) == self.rows, chosen.__name__

    def row_ids(self):
        if ROW_IDS not in self.properties:
            return None
        return {r.id: r.row_id for r in self.table.data.select("id", "_metadata.row_id").collect()}


def rows_of(frame):
    return Counter((r.id, r.p, r.v) for r in frame.select("id", "p", "v").collect())


@pytest.mark.parametrize("seed", range(6))
def test_rows_and_history_stay(spark, new_table, seed):
    history = History(spark, new_table, random.Random(seed))
    versions = {}
    history.append()
    for _ in range(14):
        history.step()
        versions[history.table.version] = Counter(history.rows)
    for version, rows in versions.items():
        assert rows_of(spark.sql(f"SELECT * FROM {history.table.name} VERSION AS OF {version}")) == rows
