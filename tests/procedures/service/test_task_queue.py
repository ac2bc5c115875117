"""A service waits while Spark really has queued tasks of another pool."""

import os
import threading

import pytest
from fake_clock import FakeClock
from pyspark import InheritableThread
from service_fakes import MINUTE
from tables import NUMBERS, numbers

from catalog.jvm.task_queue import cores, tasks_queued_outside
from procedures.process.application import application
from procedures.service.service import Service

POOL_KEY = "spark.scheduler.pool"


@pytest.fixture
def occupy(spark, tmp_path):
    """Starts a job of 12 tasks in a pool, each of which blocks in opening a pipe, and returns how to end it."""
    ends = []

    def start(pool):
        pipe = tmp_path / pool
        os.mkfifo(pipe)
        name = str(pipe)

        def work():
            spark.sparkContext.setLocalProperty(POOL_KEY, pool)
            spark.sparkContext.parallelize(range(12), 12).foreach(lambda _: os.close(os.open(name, os.O_RDONLY)))

        job = InheritableThread(target=work)
        job.start()
        _await(lambda: _active(spark) == 2)

        def end():
            # With a writer, no reader blocks any more.
            writer = os.open(name, os.O_RDWR)
            job.join(120)
            os.close(writer)
            assert not job.is_alive()
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

        ends.append(end)
        return end

    yield start
    for end in ends:
        end()


def _active(spark):
    tracker = spark.sparkContext.statusTracker()
    return sum(tracker.getStageInfo(stage).numActiveTasks for stage in tracker.getActiveStageIds())


def _await(reached):
    for _ in range(1200):
        if reached():
            return
        threading.Event().wait(0.05)
    raise AssertionError("the tasks did not start")


@pytest.mark.slow
def test_queued_tasks_of_another_pool_make_a_run_wait(spark, new_table, set_conf, occupy):
    table = new_table(NUMBERS, index="x,y").append(numbers(spark, 100))
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.autoOptimize.enabled'='true')")
    set_conf("spark.qbeast.use.service.enabled", "true")
    clock = FakeClock()
    service = Service(spark, clock=clock, tables=[table.name])
    try:
        end = occupy("default")
        assert (tasks_queued_outside(spark, "use"), cores(spark)) == (10, 2)
        assert tasks_queued_outside(spark, "default") == 0
        service.tick()
        (row,) = spark.sql(f"CALL use.status('{table.name}')").collect()
        assert (row.state, row.run_id) == ("waiting", None)
        assert "10 tasks of other jobs are queued, and it starts with at most 2" in row.message
        assert row.next_run.timestamp() == (clock.time + 10 * MINUTE) / 1000
        end()
        assert tasks_queued_outside(spark, "use") == 0
        clock.go_on(MINUTE)
        service.tick()
        assert service.join(120)
        assert not table.unindexed
    finally:
        service.stop()
    assert not application().automations.all()
