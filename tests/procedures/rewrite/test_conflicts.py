"""Other writers between the steps of a rewrite, staged by its phases and never by waiting."""

import importlib
import json
import os
import select
import shutil
import threading
from operator import attrgetter

import pytest
from placement import check_placement
from pyspark.errors.exceptions import captured
from pyspark.sql import functions as F
from staging import STEPS, At, settings_of
from tables import DeltaTable

from catalog.errors import ConcurrentChangeError
from catalog.state.lease import LEASE_FILE
from procedures.declare.runs import Run
from procedures.layout.step import Step, ignore_step
from procedures.loop.interfaces import PlanRequest
from procedures.loop.planner import TablePlanner
from procedures.loop.table_optimizer import optimize
from procedures.rewrite.group_rewrite import rewrite
from procedures.rewrite.results import RewriteContext

VECTORS = {"delta.enableDeletionVectors": "true"}
NO_VECTORS = {"delta.enableDeletionVectors": "false"}


@pytest.fixture
def table(spark, new_table, request):
    properties = getattr(request, "param", NO_VECTORS)
    made = new_table("a BIGINT, b DOUBLE", index="a,b", cube_size=100, properties=properties)
    return made.append(spark.range(600).select(F.col("id").alias("a"), (F.col("id") / 7).alias("b")))


def _rewrite(table, observe, **given):
    (group,) = TablePlanner(table.managed, settings_of(**given)).plan(PlanRequest()).groups
    return rewrite(table.managed, group, RewriteContext("call", {}, observe))


def _optimize(table, observe, **given):
    return optimize(table.managed, settings_of(**given), Run.of(table.managed, "call", {}), observe)


def test_the_steps_in_their_order(table):
    seen = At(None, None)
    _rewrite(table, seen)
    assert seen.seen == [Step.READ, Step.PLACE, Step.REVISION, Step.WRITE, Step.VERIFY, Step.COMMIT]


def test_a_conflict_is_recognized_beside_the_python_package_of_delta(table, monkeypatch):
    """Its import makes PySpark raise conflicts as exceptions of its own."""
    # The test restores the conversion that the import replaces.
    original = captured.convert_exception
    monkeypatch.setattr(captured, "convert_exception", original)
    of_delta = importlib.import_module("delta.exceptions.captured")
    monkeypatch.setattr(captured, "convert_exception", lambda e: of_delta._convert_delta_exception(e) or original(e))
    at = At(Step.COMMIT, lambda: table.sql("DELETE FROM {t} WHERE a % 10 = 3"))
    with pytest.raises(ConcurrentChangeError, match="Another writer was first"):
        _rewrite(table, at)
    assert table.data.count() == 540


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    ("table", "step"),
    [(NO_VECTORS, Step.COMMIT), *((VECTORS, step) for step in reversed(STEPS))],
    indirect=["table"],
    ids=str,
)
def test_a_delete_of_input_rows_wins(table, step):
    files_before = table.on_disk()
    at = At(step, lambda: table.sql("DELETE FROM {t} WHERE a % 10 = 3"))
    if step is Step.READ:
        # The transaction has not begun to read: it must see that its plan is outdated.
        with pytest.raises(ConcurrentChangeError):
            _rewrite(table, at)
    else:
        with pytest.raises(ConcurrentChangeError) as lost:
            _rewrite(table, at)
        assert (lost.value.code, lost.value.sql_state) == ("USE_CONCURRENT_CHANGE", "40001")
    assert at.done
    assert table.data.count() == 540
    assert table.data.where("a % 10 = 3").count() == 0
    # What is new on disk is of the delete: every data file is one that the log knows, or was there before.
    assert table.on_disk() <= files_before | table.paths | _vectors(table)


def _vectors(table):
    return {f for f in table.on_disk() if "deletion_vector" in f}


@pytest.mark.parametrize("table", [VECTORS], indirect=True, ids=["vectors"])
def test_a_lost_race_is_planned_anew(table):
    at = At(Step.COMMIT, lambda: table.sql("DELETE FROM {t} WHERE a < 100"))
    report = _optimize(table, at)
    assert [r.state for r in report] == ["failed", "committed"]
    assert report[0].reason == "USE_CONCURRENT_CHANGE"
    assert report[0].version is None
    assert report[1].rows == 500
    assert table.data.count() == 500
    assert check_placement(table) == 500


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=attrgetter("value"))
def test_an_append_disturbs_nothing(spark, table, step):
    table.index()
    table.append(spark.range(50, 100).selectExpr("id a", "id / 7D b"))
    at = At(step, lambda: table.append(spark.range(1000, 1010).selectExpr("id a", "0D b")))
    result = _rewrite(table, at)
    assert at.done
    assert result.version == table.version
    assert table.data.count() == 660
    assert sum(f.rows for f in table.unindexed) == 10


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("step", [Step.PLACE, Step.REVISION, Step.WRITE, Step.COMMIT], ids=attrgetter("value"))
def test_an_append_while_a_new_revision_is_made(spark, table, step):
    """Neither the append nor the rewrite fails, whenever the append comes."""
    at = At(step, lambda: table.append(spark.range(1000, 1010).selectExpr("id a", "0D b")))
    report = _optimize(table, at, max_iterations=1)
    assert at.done
    assert [r.state for r in report if r.strategy] == ["committed"]
    assert report[0].message.startswith("made revision 1") or "made revision 1" in report[0].message
    assert table.data.count() == 610
    assert sum(f.rows for f in table.unindexed) == 10
    _optimize(table, ignore_step)
    assert not table.unindexed
    assert check_placement(table) == 610


def test_an_append_in_flight_survives_a_new_revision(spark, table, tmp_path):
    """It begins before the table has a revision, and commits after the revision and the rows of the rewrite."""
    begun, go = tmp_path / "begun", tmp_path / "go"
    os.mkfifo(begun)
    os.mkfifo(go)

    def held(number):
        if number == 1000:
            begun.write_text("1")
            with go.open("rb", buffering=0) as signal:
                signal.read(1)
        return number, 0.0

    numbers = spark.sparkContext.parallelize(range(1000, 1010), 1)
    rows = spark.createDataFrame(numbers.map(held), "a BIGINT, b DOUBLE")
    failures = []

    def append():
        try:
            table.append(rows)
        except Exception as error:  # noqa: BLE001 - told to the thread that judges
            failures.append(error)

    # Open at both ends, so that the test fails rather than hangs when the append ends early.
    reading, writing = os.open(begun, os.O_RDWR), os.open(go, os.O_RDWR)
    thread = threading.Thread(target=append)
    thread.start()
    try:
        assert select.select([reading], [], [], 120)[0]
        result = _rewrite(table, ignore_step)
        assert result.new_revision == 1
        # The next data leaves the space: a second revision beside the same append.
        elsewhere = DeltaTable(spark.newSession(), table.name)
        elsewhere.append(elsewhere.spark.range(5000, 5010).selectExpr("id a", "id / 7D b"))
        assert _rewrite(table, ignore_step).new_revision == 2
    finally:
        os.write(writing, b"1")
        thread.join()
        os.close(reading)
        os.close(writing)
    assert not failures
    assert table.data.count() == 620
    assert sorted(table.revisions) == [0, 1, 2]
    # The append has not written the metadata back that it began with, also not to its checksum.
    (checksum,) = (table.path / "_delta_log").glob(f"{table.version:020d}.crc")
    assert "qbeast.revision.2" in json.loads(checksum.read_text())["metadata"]["configuration"]
    assert [f.rows for f in table.unindexed] == [10]
    _optimize(table, ignore_step)
    assert check_placement(table) == 620


@pytest.mark.slow
@pytest.mark.parametrize("step", [Step.WRITE, Step.COMMIT], ids=attrgetter("value"))
def test_changed_properties_are_typed_and_planned_anew(spark, table, step):
    table.index()
    table.append(spark.range(50, 100).selectExpr("id a", "id / 7D b"))
    at = At(step, lambda: table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('mine'='1')"))
    report = _optimize(table, at, strategy="UnindexedFiles")
    assert [r.state for r in report] == ["failed", "committed"]
    assert report[0].reason == "USE_CONCURRENT_CHANGE"
    assert table.sql("SHOW TBLPROPERTIES {t} ('mine')")[0].value == "1"
    assert check_placement(table) == 650


@pytest.mark.slow
def test_plain_optimize_of_the_inputs(spark, table):
    table.append(spark.range(600, 700).selectExpr("id a", "0D b"))
    at = At(Step.COMMIT, lambda: table.sql("OPTIMIZE {t}"))
    report = _optimize(table, at)
    assert [r.state for r in report] == ["failed", "committed"]
    assert table.data.count() == check_placement(table) == 700


@pytest.mark.slow
def test_a_second_optimize_at_the_same_time(table):
    """Two that do not know of each other, as when the lease is lost: one wins, and nothing is there twice."""

    def without_lease():
        table.managed.delete_state(LEASE_FILE)
        table.optimize()

    before = table.checksum()
    at = At(Step.COMMIT, without_lease)
    report = _optimize(table, at)
    assert [r.state for r in report] == ["failed"]
    assert table.checksum() == before
    assert len([1 for v in range(table.version + 1) if table.commit_info(v)["operation"] == "USE OPTIMIZE"]) == 1
    assert check_placement(table) == 600


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("appends", [0, 4], ids=["fewer versions", "more versions"])
def test_a_table_that_is_dropped_and_created_again(spark, table, appends):
    """Its log begins anew; the commit of a former version would leave a gap in it, or remove files that it lacks."""

    def recreate():
        table.sql("DROP TABLE {t}")
        table.sql("CREATE TABLE {t} (a BIGINT, b DOUBLE) USING delta TBLPROPERTIES ('use.index.columns'='a')")
        for _ in range(appends):
            table.append(spark.range(5).selectExpr("id a", "0D b"))

    with pytest.raises(ConcurrentChangeError, match="dropped or replaced"):
        _rewrite(table, At(Step.COMMIT, recreate))
    assert table.version == appends
    assert table.data.count() == 5 * appends
    assert table.on_disk() == table.paths


class AfterCommit:
    """Delta's observer of transactions: acts after a commit is written, and before Delta loads it."""

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)

    def __init__(self):
        self.act = None

    def beginPostCommit(self):  # noqa: N802
        if self.act:
            self.act()

    def createChild(self):  # noqa: N802
        return self

    def startingTransaction(self, body):  # noqa: N802
        return body.apply()

    preparingCommit = startingTransaction  # noqa: N815

    def _ignore(self):
        """Nothing to do."""

    beginDoCommit = beginBackfill = transactionCommitted = transactionAborted = advanceToNextThreadObserver = _ignore  # noqa: N815


@pytest.fixture
def after_commit(spark):
    """Observes the transactions that this thread begins."""
    observers = getattr(getattr(spark._jvm, "org.apache.spark.sql.delta.TransactionExecutionObserver$"), "MODULE$")
    before, observer = observers.getObserver(), AfterCommit()
    observers.setObserver(observer)
    yield observer
    observers.setObserver(before)


def test_a_commit_that_arrives_in_a_log_that_begins_anew(table, new_table, after_commit):
    """It is deleted: nobody could read the other table beyond the gap."""
    other = new_table("a BIGINT, b DOUBLE")
    log = table.path / "_delta_log"

    def begin_anew():
        commit = max(log.glob("*.json"))
        text = commit.read_bytes()
        shutil.rmtree(log)
        shutil.copytree(other.path / "_delta_log", log)
        commit.write_bytes(text)

    def arm():
        after_commit.act = begin_anew

    _rewrite(table, At(Step.COMMIT, arm))
    assert [file.name for file in log.glob("*.json")] == [f"{0:020d}.json"]
    assert table.data.count() == 0


def test_a_replaced_table(spark, table):
    def recreate():
        table.sql(
            "CREATE OR REPLACE TABLE {t} (a BIGINT, b DOUBLE) USING delta TBLPROPERTIES ('use.index.columns'='a')"
        )
        table.append(spark.range(5).selectExpr("id a", "0D b"))

    with pytest.raises(ConcurrentChangeError):
        _rewrite(table, At(Step.COMMIT, recreate))
    assert table.data.count() == 5


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("step", [Step.READ, Step.VERIFY, Step.COMMIT], ids=attrgetter("value"))
def test_an_error_leaves_no_file_and_no_commit(table, step):
    version, files = table.state()

    def fail():
        raise KeyError("staged")

    with pytest.raises(KeyError, match="staged"):
        _rewrite(table, At(step, fail))
    if step in (Step.VERIFY, Step.COMMIT):
        # The revision is there by then, and has no files.
        version += 1
        assert not table.added(version)
        assert not table.removed(version)
        assert sorted(table.revisions) == [0, 1]
    assert table.state() == (version, files)
