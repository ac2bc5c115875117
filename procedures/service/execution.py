"""What the service needs of the engine: running a wish, and the looks that decide whether to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from catalog.jvm.log_probe import commits_since_optimized, is_suspended
from catalog.jvm.session import TIME_ZONE_KEY, activate, described_jobs, is_stopped
from catalog.properties.index_properties import TARGET_FILE_BYTES
from catalog.properties.session_settings import PROGRESS
from catalog.table.managed_table import ManagedTable
from procedures.application import Application
from procedures.optimizer.engine import optimize
from procedures.optimizer.report import FAILED, ReportRow, passed_over
from procedures.optimizer.runs import Run
from procedures.service.schedule import Wish

# Reasons of rows without a strategy that an owner can act on.
_TOLD = ("LEASE_HELD", "NO_PROGRESS")
_MOST_TOLD = 5


@dataclass(frozen=True)
class Files:
    """What triggers ask of a table's files; sizes in bytes, small = under half the target file size."""

    bytes: int
    unindexed_bytes: int
    small_files: int


@dataclass(frozen=True)
class RunOutcome:
    """What became of a run that did not fail.

    Attributes:
        settled: the version at which nothing was left to do, None when something may be.
        note: what it left alone and why, for people; '' when there is nothing to say.
    """

    settled: int | None
    note: str = ""


class Engine(Protocol):
    """Everything that touches a table."""

    def run(self, run: Run, wish: Wish, pool: str) -> RunOutcome:
        """Optimizes the table."""
        ...

    def suspended(self, location: str) -> bool:
        """Whether the table is suspended."""
        ...

    def commits(self, location: str, after: int, most: int) -> int:
        """Commits of others since the last optimization; see ``commits_since_optimized``."""
        ...

    def files(self, table: str) -> Files:
        """What the table's files are."""
        ...


class SparkEngine:
    """The engine of a service, in the session of its own.

    Args:
        spark: the session.
        app: lists the runs.
    """

    def __init__(self, spark: SparkSession, app: Application) -> None:
        self._spark = spark
        self._app = app

    def run(self, run: Run, wish: Wish, pool: str) -> RunOutcome:
        """See ``Engine.run``; to be called in a thread of its own."""
        prepare_thread(self._spark, pool)
        rows = optimize(ManagedTable.find(self._spark, run.table), wish.settings(), run, app=self._app)
        return RunOutcome(settled_version(rows, run), note_of(rows))

    def suspended(self, location: str) -> bool:
        """See ``Engine.suspended``."""
        return is_suspended(self._spark, location)

    def commits(self, location: str, after: int, most: int) -> int:
        """See ``Engine.commits``."""
        return commits_since_optimized(self._spark, location, after, most)

    def files(self, table: str) -> Files:
        """See ``Engine.files``; one Spark job."""
        snapshot = ManagedTable.find(self._spark, table).snapshot()
        small = TARGET_FILE_BYTES.value(snapshot.configuration) // 2
        size, unindexed = F.col("size"), F.col("revision") == 0
        with described_jobs(self._spark, f"USE service: looking at {table}"):
            found = snapshot.files.agg(
                F.coalesce(F.sum(size), F.lit(0)).alias("bytes"),
                F.coalesce(F.sum(F.when(unindexed, size)), F.lit(0)).alias("unindexed_bytes"),
                F.count(F.when(size < small, 1)).alias("small_files"),
            ).collect()[0]
        return Files(found["bytes"], found.unindexed_bytes, found.small_files)


def background_session(spark: SparkSession) -> SparkSession:
    """A session of the application for work in the background.

    Progress bars are for those who ask for them. Times without a zone are read as in the session that is given.
    """
    made = spark.newSession()
    made.conf.set(TIME_ZONE_KEY, str(spark.conf.get(TIME_ZONE_KEY)))
    is_shown = PROGRESS.of_conf_or_default(spark.conf.get) == "true"
    made.conf.set(PROGRESS.name, "true" if is_shown else "false")
    return made


def prepare_thread(spark: SparkSession, pool: str) -> None:
    """Makes the calling thread, and the threads that it starts, work for the service."""
    activate(spark)
    # Users' queries go first: see the weights of the pools.
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def settled_version(rows: Sequence[ReportRow], run: Run) -> int | None:
    """The version at which a run found nothing more to do; None when it ended for another reason."""
    if run.stop_reason is not None or not rows or rows[-1].state == FAILED:
        return None
    if any(row.reason in ("LEASE_HELD", "LIMIT_REACHED") for row in rows):
        return None
    return max((row.version for row in rows if row.version is not None), default=None)


def note_of(rows: Sequence[ReportRow]) -> str:
    """What a run left alone and why, for its table's status.

    That it found nothing to do, or was asked to stop, is no news: the state of the table says so.

    Args:
        rows: its report.
    """
    told = [found for found in passed_over(rows) if found.strategy is not None or found.reason in _TOLD]
    shown = [found.text for found in told[:_MOST_TOLD]]
    return "; ".join([*shown, f"and {len(told) - _MOST_TOLD} more reasons"] if len(told) > _MOST_TOLD else shown)


def is_running(spark: SparkSession) -> bool:
    """Whether the session's SparkContext is the running one, and nobody is stopping it."""
    context = spark.sparkContext
    return SparkContext._active_spark_context is context and not is_stopped(context)
