"""Runs of other processes: ``use.status`` shows them by the leases of their tables, and ``use.cancel`` stops them."""

import threading

import pytest
from staging import At, run_of, settings_of
from tables import NUMBERS, numbers

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from procedures.layout.step import Step
from procedures.loop.table_optimizer import optimize
from procedures.process.application import Application


class _FastRenewals:
    """A clock on which renewals of the lease come at once."""

    def now(self):
        return SYSTEM_CLOCK.now()

    def monotonic(self):
        return SYSTEM_CLOCK.monotonic()

    def wait(self, event, seconds):
        # A lease that is read while it is being written seems to be empty.
        return event.wait(min(seconds, 0.5))


@pytest.mark.parametrize("by_name", [True, False])
def test_a_run_of_another_process_is_shown_and_cancelled(spark, new_table, by_name):
    table = new_table(NUMBERS, index="x,y")
    for start in (0, 50):
        table.append(numbers(spark, 50, start))
    run, stopping, seen = run_of(table), threading.Event(), {}
    run.on_stop = stopping.set
    named = {"table": table.name} if by_name else {}

    def elsewhere():
        """What another process does while the first group is being written."""
        (seen["row"],) = [
            row for row in sql_ext.call(spark, "status", details=True, **named).collect() if row.run_id == run.run_id
        ]
        (seen["answer"],) = sql_ext.call(spark, "cancel", id=run.run_id, **named).collect()
        assert stopping.wait(60)

    # Its runs are those of an application that this process does not know.
    app = Application(clock=_FastRenewals())
    settings = settings_of(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    report = optimize(table.managed, settings, run, At(Step.WRITE, elsewhere), app)
    assert [(row.state, row.reason) for row in report] == [("committed", "UNINDEXED"), ("skipped", "CANCELLED")]
    assert len(table.unindexed) == 1
    row, answer = seen["row"], seen["answer"]
    assert (row.state, row.committed_groups, row.application) == ("running", 0, spark.sparkContext.applicationId)
    assert row.message.startswith(f"runs in {row.lease_holder}, application ")
    assert row.current
    assert (answer.state, answer.table) == ("requested", row.table)
    assert f"{row.lease_holder} sees the request within 15 seconds" in answer.message
    assert table.managed.list_state("cancels") == []
    assert all(row.run_id != run.run_id for row in sql_ext.call(spark, "status", **named).collect())


def test_an_unknown_run_is_refused(spark):
    with pytest.raises(sql_ext.UseError) as refused:
        sql_ext.call(spark, "cancel", id="nobody")
    assert refused.value.code == "USE_UNKNOWN_RUN"
