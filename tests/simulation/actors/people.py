"""People who protect versions and cancel runs."""

from __future__ import annotations

from catalog.errors import ProtectionError, UnknownNameError, UseError
from catalog.state import cancel_requests, protection
from catalog.state.lease import leases_of, this_process
from procedures.calls import protect as protect_call
from procedures.declare.declaration import Call
from simulation.faults import StoreError
from simulation.surroundings.sessions import Session
from simulation.world import World


def protect(world: World, session: Session) -> None:
    """Protects old versions, and ends the protection of some."""
    for number in range(2):
        world.rest(15_000)
        name = f"p{world.random.randrange(1000)}-{number}"
        # Old ones, which a purge is about to end, more often.
        version = min(world.random.randrange(world.log.newest + 1), world.random.randrange(world.log.newest + 1))
        call = Call(session, {}, "call")  # type: ignore[arg-type]
        try:
            protect_call.protect(call, "t", version, name)
        except (UseError, StoreError):
            continue
        world.invariants.protected[name] = version
        world.invariants.check(world.log.can_make(version), f"log: version {version} was protected and is lost")
        world.rest(20_000)
        if world.random.random() < 0.3:
            world.invariants.protected.pop(name)
            try:
                protection.unprotect(session.table, name)
            except (UnknownNameError, ProtectionError):
                continue


def cancel(world: World, session: Session) -> None:
    """Asks the run that holds the lease to stop."""
    world.rest(20_000)
    for lease in leases_of(session.table, world.clock.now()):
        cancel_requests.request_cancel(session.table, lease.run_id, world.clock.now(), this_process())
