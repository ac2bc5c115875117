"""Statements that lose to a rewrite run again, once for each loss, and never after a commit of their own."""

import threading

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from statement_tables import NO_VECTORS, STATEMENTS, metrics_of, note, pair, rows
from tables import DeltaTable

from procedures.layout.step import Step
from procedures.rewrite.kept_rows import write_kept_rows
from sql_ext import bridge

# PySpark has a class for Delta's errors once delta.exceptions is imported.
CONFLICT = (PySparkException, Py4JJavaError)


class Staged:
    """Acts in other threads at each time that a statement is about to write its rows, in turn."""

    def __init__(self, monkeypatch, *acts):
        self.acts, self.runs = list(acts), 0

        def observe(step):
            if step is Step.WRITE:
                self.runs += 1
                if self.acts:
                    elsewhere(self.acts.pop(0))

        monkeypatch.setattr(bridge, "write_kept_rows", lambda handle, app: write_kept_rows(handle, app, observe))


def elsewhere(act):
    """A thread has one transaction of Delta's at a time."""
    failures = []

    def run():
        try:
            act()
        except Exception as error:  # noqa: BLE001 - it is looked at in the other thread
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures, failures


def unoptimized_pair(spark, new_table, **given):
    """The first table has an unindexed file, which the next optimization rewrites."""
    tables = pair(spark, new_table, **given)
    for table in tables:
        table.append(rows(spark, 5000, 6000))
    return tables


def rewrite(table):
    return lambda: table.optimize(strategy="UnindexedFiles")


@pytest.mark.parametrize("name", [n if n == "merge" else pytest.param(n, marks=pytest.mark.slow) for n in STATEMENTS])
def test_a_statement_that_loses_to_a_rewrite_runs_again(spark, new_table, monkeypatch, name):
    indexed, plain = unoptimized_pair(spark, new_table)
    version = indexed.version
    staged = Staged(monkeypatch, rewrite(indexed))
    result = indexed.sql(STATEMENTS[name])
    assert staged.runs >= 1
    assert result == plain.sql(STATEMENTS[name])
    assert indexed.checksum() == plain.checksum()
    assert metrics_of(indexed) == metrics_of(plain)
    operations = [indexed.commit_info(v)["operation"] for v in range(version + 1, indexed.version + 1)]
    assert operations.count(plain.commit_info(plain.version)["operation"]) == 1
    if name != "merge without a match":
        assert note(indexed) == {"repeats": 1, "plain_files": {}}
        assert staged.runs == 2
        status = spark.sql(f"CALL use.status('{indexed.name}', details => true)").first()
        assert (status.repeated_statements, status.plain_files) == (1, 0)
    # What the first attempt wrote is deleted.
    named = {add["path"] for v in range(indexed.version + 1) for add in indexed.added(v)}
    assert indexed.on_disk() <= named


@pytest.mark.slow
def test_an_idempotent_statement_keeps_its_number(spark, new_table, monkeypatch, set_conf):
    indexed, _ = unoptimized_pair(spark, new_table)
    writes = "spark.databricks.delta.write"
    set_conf(f"{writes}.txnVersion.autoReset.enabled", "true")
    set_conf(f"{writes}.txnAppId", "nightly")
    set_conf(f"{writes}.txnVersion", "7")
    Staged(monkeypatch, rewrite(indexed))
    indexed.sql(STATEMENTS["update"])
    assert note(indexed)["repeats"] == 1
    assert spark.conf.get(f"{writes}.txnVersion", None) is None
    (number,) = [action["txn"] for action in indexed.actions(indexed.version) if "txn" in action]
    assert (number["appId"], number["version"]) == ("nightly", 7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "feature", ["delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.enableRowTracking"]
)
def test_with_features(spark, new_table, monkeypatch, feature):
    """Without deletion vectors, and with them; a feed shows each change once; rewrites say which rows have numbers."""
    properties = {**NO_VECTORS, feature: "true"}
    indexed, plain = unoptimized_pair(spark, new_table, properties=properties)
    first = indexed.version + 1
    Staged(monkeypatch, rewrite(indexed))
    for table in (indexed, plain):
        table.sql(STATEMENTS["update of an indexed column"])
    assert indexed.checksum() == plain.checksum()
    assert note(indexed)["repeats"] == 1
    if feature == "delta.enableChangeDataFeed":
        changes = spark.sql(f"SELECT * FROM table_changes('{indexed.name}', {first})")
        assert changes.count() == 2 * indexed.data.where("id % 50 = 11").count()


@pytest.mark.slow
def test_twice(spark, new_table, monkeypatch):
    indexed, plain = unoptimized_pair(spark, new_table)
    for table in (indexed, plain):
        table.append(rows(spark, 7000, 7400))
    first, second = (lambda path=file.path: indexed.optimize(files=[path]) for file in indexed.unindexed)
    staged = Staged(monkeypatch, first, second)
    result = indexed.sql(STATEMENTS["update"])
    assert note(indexed) == {"repeats": 2, "plain_files": {}}
    assert staged.runs == 3
    assert result == plain.sql(STATEMENTS["update"])
    assert indexed.checksum() == plain.checksum()


@pytest.mark.slow
def test_a_statement_that_also_loses_to_another_writer_fails(spark, new_table, monkeypatch):
    indexed, _ = unoptimized_pair(spark, new_table)

    def both():
        rewrite(indexed)()
        indexed.sql("DELETE FROM {t} WHERE id = 40")

    staged = Staged(monkeypatch, both)
    before = indexed.checksum()
    with pytest.raises(CONFLICT, match=r"(?i)concurrent"):
        indexed.sql(STATEMENTS["update"])
    # The other writer has written in between; the update has changed nothing.
    assert staged.runs == 2
    assert indexed.checksum()[0] == before[0] - 1
    assert indexed.data.where("s = 'updated'").isEmpty()


@pytest.mark.slow
def test_another_writer_before_the_rewrite(spark, new_table, monkeypatch):
    indexed, _ = unoptimized_pair(spark, new_table)

    def both():
        indexed.sql("DELETE FROM {t} WHERE id = 40")
        rewrite(indexed)()

    Staged(monkeypatch, both)
    with pytest.raises(CONFLICT, match=r"(?i)concurrent"):
        indexed.sql(STATEMENTS["merge"])
    assert indexed.data.where("s = 'changed'").isEmpty()


@pytest.mark.slow
def test_commits_in_between_that_are_no_conflict(spark, new_table, monkeypatch):
    """Statements of others in another partition leave the statement to be repeated."""
    indexed, plain = unoptimized_pair(spark, new_table, tail="PARTITIONED BY (p)")
    others = "DELETE FROM {t} WHERE p = 1 AND id < 50"
    statement = "UPDATE {t} SET s = 'updated' WHERE p = 2 AND id % 50 = 9"

    def both():
        rewrite(indexed)()
        indexed.append(rows(spark, 8000, 8100).where("p = 1"))
        with monkeypatch.context() as context:
            context.setattr(bridge, "write_kept_rows", write_kept_rows)
            indexed.sql(others)

    staged = Staged(monkeypatch, both)
    indexed.sql(statement)
    assert note(indexed)["repeats"] == 1
    assert staged.runs == 2
    plain.append(rows(spark, 8000, 8100).where("p = 1"))
    plain.sql(others)
    plain.sql(statement)
    assert indexed.checksum() == plain.checksum()


@pytest.mark.slow
def test_an_append_that_delta_takes_for_a_conflict(spark, new_table, monkeypatch):
    """Delta's error stays although a rewrite has taken files, too."""
    indexed, _ = unoptimized_pair(spark, new_table)

    def both():
        rewrite(indexed)()
        indexed.append(rows(spark, 8000, 8100))

    staged = Staged(monkeypatch, both)
    with pytest.raises(CONFLICT, match=r"ConcurrentAppend|CONCURRENT_APPEND"):
        indexed.sql(STATEMENTS["delete"])
    assert staged.runs == 1


# ------------------------------------------------------------------------------------------ lost answers of a commit


@pytest.fixture
def denying(spark, tmp_path):
    """An indexed table under ``deny://`` with an unindexed file, and the switch of that file system."""
    switch = spark._jvm.io.usespark.testing.DenyingFileSystem
    path = f"deny://{tmp_path}/t"
    table = DeltaTable(spark, f"delta.`{path}`")
    rows(spark).write.format("delta").option("delta.enableDeletionVectors", "false").save(path)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'x,id', 'use.index.cubeSize' = '300')")
    table.index()
    rows(spark, 5000, 6000).write.format("delta").mode("append").save(path)
    yield table, switch
    switch.failAfterRename(None)
    switch.existAfterRename(None)


INCREMENT = "UPDATE {t} SET p = p + 1000 WHERE id % 50 = 9"
MERGE = "MERGE INTO {t} t USING (SELECT 1 AS one) s ON t.id % 50 = 9 WHEN MATCHED THEN UPDATE SET p = p + 1000"


def outcome(table, statement):
    """Whether the statement succeeded; it has changed each row once, whatever it says."""
    try:
        table.sql(statement)
    except CONFLICT:
        return False
    return True


def check_changed_once(table):
    changed = table.data.where("id % 50 = 9").selectExpr("min(p) AS low", "max(p) AS high", "count(*) AS n").first()
    assert 1000 <= changed.low <= changed.high < 2000
    assert changed.n == 80
    assert table.data.count() == 4000
    assert table.data.where("p >= 1000").count() == 80


@pytest.mark.parametrize("switched", [pytest.param("failAfterRename", marks=pytest.mark.slow), "existAfterRename"])
@pytest.mark.parametrize("statement", [INCREMENT, pytest.param(MERGE, marks=pytest.mark.slow)], ids=["update", "merge"])
def test_a_commit_whose_answer_is_lost(denying, monkeypatch, statement, switched):
    """It is there: the statement does not run again, not even if the store says that somebody else was first."""
    table, switch = denying
    staged = Staged(monkeypatch)
    getattr(switch, switched)(f"/t/_delta_log/{table.version + 1:020d}.json")
    outcome(table, statement)
    assert staged.runs == 1
    check_changed_once(table)


@pytest.mark.slow
@pytest.mark.parametrize("switched", ["failAfterRename", "existAfterRename"])
def test_a_lost_answer_after_a_loss(denying, monkeypatch, switched):
    """The first attempt loses to a rewrite; the second is committed, and its answer is lost."""
    table, switch = denying

    def rewrite_and_lose():
        table.optimize(strategy="UnindexedFiles")
        getattr(switch, switched)(f"/t/_delta_log/{table.version + 1:020d}.json")

    staged = Staged(monkeypatch, rewrite_and_lose)
    outcome(table, INCREMENT)
    assert staged.runs == 2
    check_changed_once(table)


@pytest.mark.parametrize(
    ("mode", "wider"),
    [("overwrite", False), ("append", True), pytest.param("append", False, marks=pytest.mark.slow)],
    ids=["overwrite", "new revision", "append"],
)
def test_an_indexed_write_whose_answer_is_lost(spark, denying, mode, wider):
    """Its second attempt conflicts with the first one, whose files must stay."""
    table, switch = denying
    before = table.data.select("id")
    new = rows(spark, 6000, 6500)
    if wider:
        new = new.withColumn("x", new.x * 1000)
    switch.existAfterRename(f"/t/_delta_log/{table.version + 1:020d}.json")
    location = table.name.partition("`")[2].strip("`")
    expected = new.select("id") if mode == "overwrite" else before.union(new.select("id"))
    expected = sorted(row.id for row in expected.collect())
    new.write.format("qbeast").mode(mode).option("columnsToIndex", "x,id").save(location)
    assert sorted(row.id for row in table.data.select("id").collect()) == expected
