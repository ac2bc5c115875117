"""A reclamation waits for the lease of another run; clock and lease are fakes, and no Spark is needed."""

import pytest
from fake_clock import FakeClock

from catalog.errors import ConcurrentChangeError
from catalog.state.lease import LEASE_MILLIS, Acquired, HeldBy, Lease
from procedures.lifecycle.purge.lease_wait import MOST_SECONDS, SECONDS_BETWEEN_LOOKS, LeaseWait

MINUTE = 60_000


class FakeLease:
    """A lease that another run holds until a time."""

    def __init__(self, clock, ends_at):
        self._clock = clock
        self._lease = Lease("run-1", "host:1", "call", clock.now(), ends_at)
        self.looks = 0

    def holder(self):
        self.looks += 1
        return self._lease if self._clock.now() < self._lease.expires_at else None

    def acquire(self):
        lease = self.holder()
        return Acquired() if lease is None else HeldBy(lease)


def _wait(clock, is_stopped=lambda: False):
    return LeaseWait("t", clock, is_stopped)


def test_a_free_lease_needs_no_wait():
    clock = FakeClock()
    lease, start = FakeLease(clock, 0), clock.now()
    _wait(clock).until_free(lease.holder)
    _wait(clock).until_acquired(lease.acquire)
    assert (clock.now(), lease.looks) == (start, 2)


def test_a_wait_ends_with_the_other_run():
    clock = FakeClock()
    start = clock.now()
    lease = FakeLease(clock, start + 2 * MINUTE)
    _wait(clock).until_free(lease.holder)
    assert clock.now() == start + 2 * MINUTE
    lease = FakeLease(clock, start + 4 * MINUTE)
    _wait(clock).until_acquired(lease.acquire)
    assert clock.now() == start + 4 * MINUTE


def test_all_waits_of_a_reclamation_are_limited_together():
    clock = FakeClock()
    start = clock.now()
    wait = _wait(clock)
    wait.until_free(FakeLease(clock, start + 3 * MINUTE).holder)
    lease = FakeLease(clock, start + 60 * MINUTE)
    with pytest.raises(ConcurrentChangeError, match=r"host:1 in run run-1 \(call\).*no file was deleted. Waited 300 s"):
        wait.until_acquired(lease.acquire)
    assert clock.now() == start + MOST_SECONDS * 1000
    assert lease.looks == (MOST_SECONDS - 180) // SECONDS_BETWEEN_LOOKS + 1
    # The lease of a killed run expires earlier.
    assert MOST_SECONDS * 1000 > LEASE_MILLIS


def test_a_caller_that_is_asked_to_stop_ends_the_wait():
    clock = FakeClock()
    start = clock.now()
    wait = _wait(clock, lambda: clock.now() >= start + 20_000)
    with pytest.raises(ConcurrentChangeError, match="Waited 20 seconds"):
        wait.until_free(FakeLease(clock, start + 60 * MINUTE).holder)
    assert clock.now() == start + 20_000
