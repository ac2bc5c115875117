"""Counts the Spark jobs that a call starts: the measure of its cost that no other work on the machine changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def jobs_started(spark: Any) -> int:
    """How many jobs the application has started. Spark's status store forgets old ones."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@contextmanager
def at_most(spark: Any, jobs: int) -> Iterator[None]:
    """Fails with the names of the jobs if the block starts more than ``jobs``."""
    before = jobs_started(spark)
    yield
    if jobs_started(spark) - before > jobs:
        raise AssertionError(f"more than {jobs} jobs: {_names_from(spark, before)}")


def _names_from(spark: Any, first: int) -> list[str]:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    return [found.apply(i).name() for i in range(found.size()) if found.apply(i).jobId() >= first]
