"""Random histories of tables whose log is consolidated in between: every version keeps its rows."""

import random

import pytest
from pyspark.sql import functions as F
from tables import checksum

import sql_ext
from catalog.errors import UseError

MODES = ("commits", "events", "file_metadata", "table_metadata")
STATS = "spark.databricks.delta.stats.collect"
STEPS = 14
SCHEMA = "id BIGINT, x DOUBLE, s STRING, p INT, ts TIMESTAMP, st STRUCT<a: INT, b: STRING>"


def rows(spark, start, count, files):
    return spark.range(start, start + count, 1, files).selectExpr(
        "id", "id / 7 AS x", "IF(id % 5 = 0, NULL, concat('s', id)) AS s", "CAST(id % 3 AS INT) AS p",
        "TIMESTAMP'2024-01-01' + make_interval(0, 0, 0, 0, 0, 0, id) AS ts",
        "named_struct('a', CAST(id AS INT), 'b', string(id)) AS st",
    )  # fmt: skip


class History:
    """A table, and the rows of each of its versions."""

    def __init__(self, spark, table, chance):
        self.spark, self.table, self.chance, self.appended, self.added = spark, table, chance, 0, 0
        self.sums = {}

    def append(self, statistics="true"):
        self.spark.conf.set(STATS, statistics)
        try:
            count = self.chance.choice([0, 1, 50, 200])
            data = rows(self.spark, self.appended, count, self.chance.choice([1, 2]))
            if "s2" in self.table.data.columns:
                data = data.withColumnRenamed("s", "s2")
            self.table.append(data, files=2)
            self.appended += count
        finally:
            self.spark.conf.unset(STATS)

    def append_without_statistics(self):
        self.append("false")

    def delete(self):
        self.table.sql(f"DELETE FROM {{t}} WHERE id % 13 = {self.chance.randrange(13)}")

    def update(self):
        self.table.sql(f"UPDATE {{t}} SET x = x + 1 WHERE id % 17 = {self.chance.randrange(17)}")

    def overwrite(self):
        self.table.data.where("id % 2 = 0").write.format("delta").mode("overwrite").saveAsTable(self.table.name)

    def restore(self):
        self.table.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {self.chance.choice(sorted(self.sums))}")

    def rename(self):
        if "s" in self.table.data.columns:
            self.table.sql("ALTER TABLE {t} RENAME COLUMN s TO s2")

    def add_column(self):
        self.added += 1
        self.table.sql(f"ALTER TABLE {{t}} ADD COLUMNS (e{self.added} INT)")

    def index(self):
        columns = self.chance.choice(["id", "id,x", "x,id"])
        self.table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.columns' = '{columns}')")
        self.table.optimize(revision_rewrite=True)

    def drop_index(self):
        try:
            sql_ext.call(self.spark, "drop_index", table=self.table.name)
        except UseError as error:
            assert error.code == "USE_NOT_INDEXED"  # noqa: PT017 - any other error is a failure

    def consolidate(self):
        modes = self.chance.sample(MODES, self.chance.randint(1, len(MODES)))
        before = checksum(self.table.data)
        sql_ext.call(self.spark, "consolidate_log", table=self.table.name, modes=modes)
        assert checksum(self.table.data) == before
        again = sql_ext.call(self.spark, "consolidate_log", table=self.table.name, modes=modes).collect()
        # Merged events are merged again when more have come.
        assert all(row.state == "skipped" for row in again if row.mode != "commits"), again

    def at(self, version):
        return checksum(self.spark.sql(f"SELECT * FROM {self.table.name} VERSION AS OF {version}"))

    def run(self):
        steps = [
            self.append, self.append_without_statistics, self.append, self.append_without_statistics, self.delete,
            self.update, self.overwrite, self.restore, self.rename, self.add_column, self.index, self.drop_index,
            self.consolidate, self.consolidate, self.consolidate,
        ]  # fmt: skip
        self.sums[0] = self.at(0)
        for _ in range(STEPS):
            self.chance.choice(steps)()
            version = self.table.version
            self.sums.setdefault(version, self.at(version))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_every_version_keeps_its_rows(spark, new_table, seed):
    """``replayed`` also compares the newest checksum of Delta with the log."""
    chance = random.Random(seed)
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": chance.choice(["true", "false"]),
        "delta.checkpointPolicy": chance.choice(["classic", "v2"]),
        "delta.checkpointInterval": chance.choice(["3", "10", "1000"]),
        "delta.dataSkippingNumIndexedCols": chance.choice(["-1", "2", "32"]),
    }
    history = History(spark, new_table(SCHEMA, index="id,x", cube_size=100, properties=properties), chance)
    history.run()
    history.table.replayed()
    for version, rows_then in history.sums.items():
        assert history.at(version) == rows_then, version
    frame = history.table.data
    for condition in ("id < 30", "x > 10 AND x < 20", "id = 7"):
        # A union with nothing hides the condition from the statistics.
        everything = frame.withColumn("hidden", F.expr(condition)).cache()
        assert frame.where(condition).count() == everything.where("hidden").count()
        everything.unpersist()
