"""Clustering and compaction between writers, readers, streams and change feeds, staged by their steps.

The rows that the table must have are kept by hand in Python.
"""

from collections import Counter
from operator import attrgetter

import pytest
from pyspark.sql import functions as F
from staging import At, settings_of
from tables import create

from procedures.declare.runs import Run
from procedures.layout.step import Step
from procedures.loop.interfaces import PlanRequest
from procedures.loop.planner import TablePlanner
from procedures.loop.table_optimizer import optimize
from procedures.rewrite.group_rewrite import rewrite
from procedures.rewrite.results import RewriteContext

pytestmark = pytest.mark.slow

SCHEMA = "id BIGINT, p INT, v BIGINT"
STEPS = (Step.READ, Step.PLACE, Step.WRITE, Step.VERIFY, Step.COMMIT)
STRATEGIES = ("SizeTieredClustering", "DeleteCompaction", "StepConsolidation")
OPTIMIZE = "USE OPTIMIZE"


class Watched:
    """A table with a change feed, its rows, a stream of its changes, and a stream of what is appended."""

    def __init__(self, spark, folder):
        self.spark, self.folder = spark, folder
        properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
        name = f"delta.`{folder / 'table'}`"
        self.table = create(spark, name, SCHEMA, properties=properties, tail="PARTITIONED BY (p)")
        self.rows, self.appended, self.next_id = Counter(), Counter(), 0
        self.versions = {}

    def append(self):
        rows = [(n, n % 2, n) for n in range(self.next_id, self.next_id + 40)]
        self.next_id += 40
        self.rows.update(rows)
        self.appended.update(rows)
        self.spark.createDataFrame(rows, SCHEMA).coalesce(1).write.format("delta").mode("append").save(
            str(self.table.path)
        )

    def delete(self):
        self.table.sql("DELETE FROM {t} WHERE id % 10 = 3")
        self.rows = Counter({row: n for row, n in self.rows.items() if row[0] % 10 != 3})

    def update(self):
        # Of one partition, since an update of all files may leave too few of them to merge.
        self.table.sql("UPDATE {t} SET v = v + 1 WHERE id % 9 = 1 AND p = 0")
        self.rows = Counter((n, p, v + (n % 9 == 1 and p == 0)) for n, p, v in self.rows.elements())

    def merge(self):
        first, end = self.next_id - 30, self.next_id + 10
        self.table.sql(
            f"MERGE INTO {{t}} t USING (SELECT id, CAST(id % 2 AS INT) p, -id AS v FROM range({first}, {end})) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
        )
        known = {row[0] for row in self.rows}
        self.rows = Counter((n, p, -n if n >= first else v) for n, p, v in self.rows.elements())
        self.rows.update((n, n % 2, -n) for n in range(first, end) if n not in known)
        self.next_id = end

    def prepare(self, strategy):
        """Makes small files, and for compaction deletes some of their rows."""
        for _ in range(4):
            self.append()
        if strategy == "DeleteCompaction":
            self.table.sql("DELETE FROM {t} WHERE id % 7 = 5")
            self.rows = Counter({row: n for row, n in self.rows.items() if row[0] % 7 != 5})
        self.versions[self.table.version] = Counter(self.rows)

    def run(self, strategy, step, action):
        """Runs a strategy; ``action`` happens before its step."""
        table, settings = self.table.managed, settings_of(strategy=strategy)
        report = optimize(table, settings, Run.of(table, "call", {}), At(step, action))
        assert any(row.state == "committed" for row in report), (strategy, step, report)
        self.versions[self.table.version] = Counter(self.rows)

    def follow(self):
        """Lets both streams go on to the newest version."""
        path = str(self.table.path)
        for name, options in (("changes", {"readChangeFeed": "true"}), ("appends", {"skipChangeCommits": "true"})):
            # Each starts with the first version, and not with a snapshot of a later one.
            stream = self.spark.readStream.format("delta").options(startingVersion="0", **options).load(path)
            stream = stream.drop("_commit_timestamp").withColumnRenamed("_commit_version", "in_version")
            sink = stream.withColumnRenamed("_change_type", "change").writeStream.format("delta")
            sink = sink.option("checkpointLocation", str(self.folder / f"checkpoint-{name}"))
            sink.trigger(availableNow=True).start(str(self.folder / name)).awaitTermination()

    def streamed(self, name):
        return self.spark.read.format("delta").load(str(self.folder / name))

    def check(self):
        """Rows, versions, change feed and streams agree with what was written by hand."""
        assert rows_of(self.table.data) == self.rows
        self.follow()
        assert rows_of(self.streamed("appends")) == self.appended
        changes = self.streamed("changes")
        assert net(changes) == self.rows
        operations = [self.table.commit_info(v)["operation"] for v in range(self.table.version + 1)]
        ours = {v for v, operation in enumerate(operations) if operation == OPTIMIZE}
        assert ours
        assert changes.where(F.col("in_version").isin(sorted(ours))).count() == 0
        feed = self.spark.read.option("readChangeFeed", "true").option("startingVersion", 0).format("delta")
        assert net(feed.load(str(self.table.path))) == self.rows
        for version in ours:
            assert not any(added["dataChange"] for added in self.table.added(version))
            assert rows_of(self.at(version)) == rows_of(self.at(version - 1))
        for version, rows in self.versions.items():
            assert rows_of(self.at(version)) == rows

    def at(self, version):
        return self.spark.read.format("delta").option("versionAsOf", version).load(str(self.table.path))


def rows_of(frame):
    return Counter((r.id, r.p, r.v) for r in frame.select("id", "p", "v").collect())


def net(changes):
    """What is left of inserts and deletes."""
    change = F.col("_change_type") if "_change_type" in changes.columns else F.col("change")
    sign = F.when(change.isin("insert", "update_postimage"), 1).otherwise(-1)
    left = changes.groupBy("id", "p", "v").agg(F.sum(sign).alias("count")).where("count <> 0").collect()
    return Counter({(r.id, r.p, r.v): r["count"] for r in left})


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("writer", ["append", "delete", "update", "merge"])
def test_another_writer_before_each_step(spark, tmp_path, strategy, writer):
    watched = Watched(spark, tmp_path)
    for step in STEPS:
        watched.prepare(strategy)
        watched.run(strategy, step, getattr(watched, writer))
        assert rows_of(watched.table.data) == watched.rows, step
    watched.check()


@pytest.mark.parametrize("writer", ["append", "delete", "overwrite"])
def test_another_writer_while_named_files_are_joined(spark, tmp_path, writer):
    """Files that are left are joined in the next iteration; no other file is."""
    watched = Watched(spark, tmp_path)
    for step in STEPS:
        for _ in range(3):
            watched.append()
        watched.versions[watched.table.version] = Counter(watched.rows)
        named = [file.path for file in watched.table.files if file.path.startswith("p=0")]

        def overwrite(watched=watched):
            """Replaces a file of the list by another one."""
            first = min(n for n, p, _ in watched.rows if p == 0)
            watched.table.sql(f"UPDATE {{t}} SET v = v WHERE id = {first}")

        others = {file.path for file in watched.table.files} - set(named)
        settings = settings_of(strategy="StepConsolidation", files=named)
        action = overwrite if writer == "overwrite" else getattr(watched, writer)
        managed = watched.table.managed
        report = optimize(managed, settings, Run.of(managed, "call", {}), At(step, action))
        assert any(row.state == "committed" for row in report), (step, report)
        assert rows_of(watched.table.data) == watched.rows, step
        if writer == "append":
            assert others <= {file.path for file in watched.table.files}
        watched.versions[watched.table.version] = Counter(watched.rows)
    watched.check()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_readers_and_streams_before_each_step(spark, tmp_path, strategy):
    watched = Watched(spark, tmp_path)
    for step in STEPS:
        watched.prepare(strategy)
        before = Counter(watched.rows)
        started = []

        def read(expected=before, started=started):
            assert rows_of(watched.table.data) == expected
            watched.follow()
            assert net(watched.streamed("changes")) == expected
            # A query that begins before the commit and ends after it.
            rows = watched.table.data.repartition(3).toLocalIterator()
            started.extend([rows, next(rows)])

        watched.run(strategy, step, read)
        rows, first = started
        assert Counter((r.id, r.p, r.v) for r in (first, *rows)) == before, step
    watched.check()


@pytest.mark.parametrize("step", [Step.WRITE, Step.COMMIT], ids=attrgetter("value"))
def test_clustering_and_compaction_of_one_table_side_by_side(spark, tmp_path, step):
    """Compaction commits between the steps of clustering; they share no file."""
    watched = Watched(spark, tmp_path)
    watched.prepare("DeleteCompaction")
    for _ in range(4):
        watched.append()

    def compact():
        # Without the lease, as a process whose lease has expired.
        (group,) = (
            TablePlanner(watched.table.managed, settings_of(strategy="DeleteCompaction")).plan(PlanRequest()).groups
        )
        rewrite(watched.table.managed, group, RewriteContext("call", {}))

    watched.run("SizeTieredClustering", step, compact)
    watched.check()
