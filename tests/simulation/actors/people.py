"""People who protect versions and cancel runs."""

from __future__ import annotations

from catalog.errors import ProtectionError, UnknownNameError, UseError
from catalog.state import cancel_requests, protection
from catalog.state.lease import leases_of, this_process
from procedures.calls import protect as protect_call
from procedures.declare.declaration import Call
from simulation.faults import StoreError
from simulation.surroundings.paths import ROOT
from simulation.surroundings.sessions import Session
from simulation.world import World

_COMMON_NAMES = ("p0", "p1")


def protect(world: World, session: Session) -> None:
    """Protects old versions, and ends the protection of some."""
    for _ in range(2):
        world.rest(15_000)
        # Some people choose the same name.
        name = world.random.choice(_COMMON_NAMES) if world.random.random() < 0.5 else world.new_name("p")[:-8]
        # Old ones, which a purge is about to end, more often.
        version = min(world.random.randrange(world.log.newest + 1), world.random.randrange(world.log.newest + 1))
        call = Call(session, {}, "call")  # type: ignore[arg-type]
        try:
            protect_call.protect(call, "t", version, name)
        except (UseError, StoreError) as error:
            _refused(world, name, version, error)
            continue
        known = world.invariants.protected.get(name)
        world.invariants.check(known is None, f"protections: {name} protects version {known} and version {version}")
        world.invariants.protected[name] = version
        world.invariants.check(world.log.can_make(version), f"log: version {version} was protected and is lost")
        world.rest(20_000)
        if world.random.random() < 0.3:
            world.invariants.protected.pop(name)
            try:
                protection.unprotect(session.table, name)
            except (UnknownNameError, ProtectionError):
                continue


def _refused(world: World, name: str, version: int, error: UseError | StoreError) -> None:
    """Nothing is protected after an error, unless somebody else uses the name."""
    code = getattr(error, "code", "")
    if world.is_calm and code != "USE_ALREADY_PROTECTED":
        # Its files may be going just now; that is recorded before.
        if code != "USE_UNKNOWN_VERSION" or version >= _recorded(world):
            world.invariants.on_error("use.protect", error)
        is_left = name not in _COMMON_NAMES and f"{ROOT}/_use/protected/{name}.json" in world.store.objects
        world.invariants.check(not is_left, f"protections: {name} is left after {error}")


def _recorded(world: World) -> int:
    """The oldest version that reclamations leave, as they have recorded it."""
    names = [path.rpartition("/")[2] for path in world.store.objects if path.startswith(f"{ROOT}/_use/reclaimed/")]
    return max((int(name.partition("-")[0]) for name in names), default=0)


def cancel(world: World, session: Session) -> None:
    """Asks the runs that hold the lease to stop."""
    for _ in range(3):
        world.rest(20_000)
        for lease in leases_of(session.table, world.clock.now()):
            world.observation.on_cancel(lease.run_id)
            cancel_requests.request_cancel(session.table, lease.run_id, world.clock.now(), this_process())
