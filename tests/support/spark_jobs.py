"""The Spark jobs that a call starts, and the files that they open: costs that no other work on the machine changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Delta reads tables anew in threads of its own, for calls that have long returned.
OF_DELTA_ALONE = "$anonfun$submit$1 at FutureTask.java"


def jobs_started(spark: Any) -> int:
    """How many jobs the application has started. Spark's status store forgets old ones."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@contextmanager
def at_most(spark: Any, jobs: int) -> Iterator[None]:
    """Fails with the names of the jobs if the block starts more than ``jobs``."""
    before = jobs_started(spark)
    yield
    if jobs_started(spark) - before > jobs:
        started = [name for name in _names_from(spark, before) if not name.startswith(OF_DELTA_ALONE)]
        if len(started) > jobs:
            raise AssertionError(f"more than {jobs} jobs: {started}")


@contextmanager
def opened_data_files(spark: Any) -> Iterator[dict[str, set[str]]]:
    """Yields the data files that jobs have opened at the end of the block, by the description of the job."""
    notes = spark._jvm.io.usespark.testing.OpenedFiles
    opened: dict[str, set[str]] = {}
    notes.start()
    try:
        yield opened
    finally:
        for note in notes.stop():
            description, _, path = note.partition("\t")
            if path.endswith(".parquet") and "/_delta_log/" not in path:
                opened.setdefault(description, set()).add(path.rpartition("/")[2])


def _names_from(spark: Any, first: int) -> list[str]:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    return [found.apply(i).name() for i in range(found.size()) if found.apply(i).jobId() >= first]
