"""Runs of a process: who hears that one is asked to stop."""

from procedures.declare.runs import CALL, Run, Runs


def _run():
    return Run("db.t", "file:/t", CALL, {}, 0)


def test_a_stop_is_announced_once_and_only_for_runs_that_begin_in_the_block():
    runs, announced = Runs(), []
    before = runs.begin(_run())
    with runs.announcing_stops(lambda: announced.append(True)):
        within = runs.begin(_run())
    after = runs.begin(_run())
    before.request_stop("CANCELLED", "cancelled")
    after.request_stop("CANCELLED", "cancelled")
    assert not announced
    within.request_stop("INTERRUPTED", "interrupted")
    within.request_stop("CANCELLED", "cancelled")
    assert announced == [True]
    assert within.stop_reason.code == "INTERRUPTED"
