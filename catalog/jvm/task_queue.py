"""The tasks that wait for a core, as the status store of the application counts them."""

from __future__ import annotations

from pyspark.sql import SparkSession


def tasks_queued_outside(spark: SparkSession, pool: str) -> int:
    """Counts the tasks of active stages that have not started, except those of one scheduler pool.

    A stage has the pool of the thread that started its job, whether the scheduler is FAIR or FIFO. A stage that waits
    for another stage is not active. A task that failed and is tried again counts until it starts.

    Args:
        spark: any session of the application.
        pool: the pool that does not count.
    """
    stages = spark.sparkContext._jsc.sc().statusStore().activeStages()
    queued = 0
    for position in range(stages.size()):
        stage = stages.apply(position)
        if stage.schedulingPool() != pool:
            # A stage of two attempts may count a completed task twice.
            queued += max(stage.numTasks() - stage.numActiveTasks() - stage.numCompleteTasks(), 0)
    return queued


def cores(spark: SparkSession) -> int:
    """Returns the number of tasks that the executors of the application run at the same time."""
    return int(spark.sparkContext.defaultParallelism)
