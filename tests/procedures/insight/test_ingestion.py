"""Plain writers append all the time while the optimizer runs; see ``tests/soak/ingest.py`` for ten minutes of it."""

import time

import pytest
from ingestion import COLUMNS, Ingestion, PlainWriter, expected_checksum
from placement import check_placement
from server_process import wait_for

from procedures.loop.optimizer import MAX_CONFLICTS_IN_A_ROW
from procedures.service.service import Service

APPENDS_PER_SECOND = 5
SERVICE = {
    "spark.qbeast.use.service.enabled": "true",
    "spark.qbeast.use.optimization-interval": "2s",
    "spark.qbeast.use.listener-interval": "1s",
}


@pytest.fixture
def ingestion_of(spark, new_table):
    """Makes a table and two writers that have not begun."""

    def make(properties=None, appends_per_delete=None):
        table = new_table(COLUMNS, index="at,x", properties=properties)
        writers = [
            PlainWriter(spark.newSession(), str(table.path), number, appends_per_delete=appends_per_delete)
            for number in range(2)
        ]
        return Ingestion(table, writers, len(writers) / APPENDS_PER_SECOND)

    return make


def check_rows(spark, ingestion):
    """No append has failed, and the table holds exactly the rows of the writers, all of them indexed at last."""
    ingestion.optimize()
    print(ingestion.summary())
    assert not ingestion.conflicts
    assert not ingestion.errors
    expected = expected_checksum(spark, ingestion.writers)
    assert ingestion.table.checksum() == expected
    assert not ingestion.table.unindexed
    assert check_placement(ingestion.table) == expected[0]


@pytest.mark.slow
def test_two_writers_without_a_pause(spark, ingestion_of):
    """Each pass takes every file that was there when it began, and loses none to an append."""
    begun = time.monotonic()
    with ingestion_of() as ingestion:
        while time.monotonic() - begun < 60:
            ingestion.optimize()
    check_rows(spark, ingestion)
    # An append may be committed, and not yet counted by its writer.
    most = len(ingestion.writers)
    assert all(one.after <= one.arrived + most for one in ingestion.passes), ingestion.passes
    assert "failed" not in [state for one in ingestion.passes for state in one.states]


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_writers_that_also_delete(spark, ingestion_of, vectors):
    """A delete may make a group lose. A pass loses a bounded number of times, and the report shows each."""
    begun = time.monotonic()
    with ingestion_of({"delta.enableDeletionVectors": vectors}, appends_per_delete=4) as ingestion:
        while time.monotonic() - begun < 30:
            ingestion.optimize()
        # On a busy machine, all deletes lose to the passes. Without a pass, they win.
        wait_for(lambda: any(writer.appends.deleted for writer in ingestion.writers), "a delete wins")
    check_rows(spark, ingestion)
    assert all(one.states.count("failed") <= MAX_CONFLICTS_IN_A_ROW for one in ingestion.passes), ingestion.passes


@pytest.mark.slow
def test_the_service_beside_writers(spark, ingestion_of, set_conf):
    """The service keeps up: what is unindexed at the end is less than half of what was appended."""
    for key, value in SERVICE.items():
        set_conf(key, value)
    ingestion = ingestion_of({"use.optimization.autoOptimize.enabled": "true"})
    service = Service(spark)
    service.start()
    try:
        begun = time.monotonic()
        with ingestion:
            while time.monotonic() - begun < 40:
                time.sleep(1)
    finally:
        service.stop()
    assert len(ingestion.table.unindexed) < ingestion.appended / 2
    check_rows(spark, ingestion)
