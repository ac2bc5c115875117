"""One history: a table with a past, processes that work on it at the same time, and what must be true at the end."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from catalog.state.lease import LEASE_MILLIS, MOST_LEASE_TIMES, leases_of, read_lease
from catalog.state.plan_claims import read_group_states
from catalog.state.plan_files import StoredPlan, plan_ids, read_plan
from simulation.actors import maintenance, people, readers, services, writers
from simulation.delta_log import AddedFile, Commit
from simulation.faults import MOST_SKEW, SKEW
from simulation.history import History
from simulation.surroundings.paths import ROOT
from simulation.surroundings.sessions import Session
from simulation.world import HOUR, World

Actor = Callable[[World, Session], None]

_ACTORS: dict[str, Actor] = {
    "append": writers.append,
    "change": writers.change,
    "read": readers.read,
    "travel": readers.travel,
    "serve": services.serve,
    "plan": services.plan,
    "execute": services.execute,
    "vacuum": maintenance.vacuum,
    "purge": maintenance.purge,
    "consolidate": maintenance.consolidate,
    "protect": people.protect,
    "cancel": people.cancel,
}
# How often a history has an actor; histories are short, and many.
# Processes whose races need each other.
_THEMES = (
    ("serve", "serve", "serve", "change", "cancel"),
    ("purge", "protect", "protect", "travel", "vacuum", "serve"),
    ("purge", "vacuum", "protect", "protect", "protect"),
    ("plan", "execute", "execute", "serve", "change"),
    ("plan", "execute", "execute", "serve", "serve", "serve"),
    ("plan", "execute", "execute", "serve", "serve", "serve"),
    ("vacuum", "serve", "append", "read", "protect"),
    ("consolidate", "consolidate", "serve", "change"),
)
_LAST_RUNS = 0.5
_HISTORIES_PER_COLLECTION = 250
_WEIGHTS = (3, 4, 2, 2, 5, 2, 2, 2, 2, 1, 3, 1)


def simulate(seed: int, phases: Counter[tuple[str, str]] | None = None, *, records: bool = False) -> History:
    """Runs one history.

    Args:
        seed: decides everything in it.
        phases: counts faults by phase.
        records: whether each step becomes an entry of the history.
    """
    world = World(seed, Counter() if phases is None else phases, records=records)
    return world.run(_set_up, _finish)


def histories(seeds: Iterable[int], phases: Counter[tuple[str, str]] | None = None) -> Iterator[History]:
    """Runs the histories of some seeds. Garbage is collected once in a while: that takes a tenth of the time otherwise.

    Args:
        seeds: of the histories.
        phases: counts faults by phase.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for number, seed in enumerate(seeds, 1):
            yield simulate(seed, phases)
            if number % _HISTORIES_PER_COLLECTION == 0:
                gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()


def _set_up(world: World) -> None:
    _make_past(world)
    choose = world.random
    if choose.random() < 0.5:
        chosen = [name for name in choose.choice(_THEMES) if choose.random() < 0.8]
    else:
        chosen = ["serve", *choose.choices(list(_ACTORS), _WEIGHTS, k=2 + choose.randrange(3))]
    if "plan" in chosen or "execute" in chosen:
        chosen += ["plan"] * ("plan" not in chosen) + ["execute"] * choose.randrange(3)
    if "plan" not in chosen and choose.random() < (0.6 if chosen.count("serve") > 1 else 0.2):
        world.pools = (choose.choice(services.POOLS),)
        world.invariants.most_spent = world.pools[0].max_bytes
    if "consolidate" in chosen:
        maintenance.store_past_events(world)
    for number, name in enumerate(chosen):
        actor = _ACTORS[name]
        world.process(f"{name} {number}", lambda session, a=actor: a(world, session))  # type: ignore[misc]


def _make_past(world: World) -> None:
    """Commits of the last hours, some of whose files are live no more; made without faults."""
    choose, log, now = world.random, world.log, world.scheduler.now
    late = int(choose.random() * HOUR) if choose.random() < 0.3 else 0
    times = sorted(now - int(choose.random() * 12 * HOUR) for _ in range(3 + choose.randrange(5)))
    for time in times:
        world.scheduler.now = time
        live = sorted(log.live[-1].values(), key=lambda file: file.path) if log.live else []
        kind = choose.random()
        if len(live) > 2 and kind < 0.5:
            taken = choose.sample(live, 2)
            merged = tuple(row for file in taken for row in world.rows_of(file))
            file = world.new_data(world.new_name("m"), merged, "past")
            log.commit(Commit(-1, -1, "OPTIMIZE", (file,), tuple(taken), time - late), log.newest)
        elif live and kind < 0.7:
            _hide_rows(world, choose.choice(live), time - late)
        else:
            count = 1 + choose.randrange(3)
            files = [
                world.new_data(world.new_name("w"), world.new_rows(1 + choose.randrange(5)), "past")
                for _ in range(count)
            ]
            rows: list[int] = [row for file in files for row in world.rows_of(file)]
            log.commit(Commit(-1, -1, "WRITE", tuple(files), data_change=True, inserted=frozenset(rows)), log.newest)
    if choose.random() < 0.3:
        # A write that was aborted long ago.
        world.scheduler.now = now - 11 * HOUR
        world.new_data(world.new_name("orphan"), (0,), "past")
    if choose.random() < 0.3:
        log.checkpoints.add(choose.randrange(log.newest + 1))
    world.scheduler.now = now


def _hide_rows(world: World, file: AddedFile, time: int) -> None:
    stored: tuple[int, ...] = world.store.objects[f"{ROOT}/{file.path}"].data  # type: ignore[assignment]
    places = [p for p in range(len(stored)) if p not in file.hidden]
    if not places:
        return
    gone = world.random.choice(places)
    vector, hidden = world.new_name("dv"), file.hidden | {gone}
    world.store.put_data(f"{ROOT}/{vector}", hidden, 10, "past")
    changed = AddedFile(file.path, file.size, file.rows, file.time, vector, hidden, file.tags)
    deleted = frozenset({stored[gone]})
    world.log.commit(Commit(-1, -1, "DELETE", (changed,), (file,), time, True, deleted=deleted), world.log.newest)


def _finish(world: World) -> None:
    """Faults are over: leases end, a run makes progress, and everything that must be readable is."""
    check = world.invariants.check
    session = Session(world)
    table = session.table
    process = world.scheduler.nowhere
    process.skew = 0
    is_calm = not world.faults.kinds
    check(not is_calm or not leases_of(table, world.clock.now()), "leases: one is left although its run has ended")
    world.scheduler.now += MOST_LEASE_TIMES * LEASE_MILLIS + 60_000
    if leases_of(table, world.clock.now()):
        # A process whose clock was ahead has left it, and it was too far in the future to count until now.
        check(SKEW in world.faults.kinds, "leases: one does not end")
        world.scheduler.now += MOST_LEASE_TIMES * LEASE_MILLIS
    now = world.clock.now()
    check(not leases_of(table, now), "leases: one does not end")
    for plan_id in plan_ids(table):
        plan = read_plan(table, plan_id, "")
        if isinstance(plan, StoredPlan):
            running = [s for s in read_group_states(table, plan, now).values() if s.is_running(now)]
            latest = now + MOST_LEASE_TIMES * LEASE_MILLIS
            check(not running or SKEW in world.faults.kinds, "leases: a claim does not end")
            check(all(state.expires_at <= latest for state in running), "leases: a claim ends much too late")
    lease = read_lease(table)
    world.scheduler.now = max(now, 0 if lease is None else lease.expires_at + 1)
    check(world.scheduler.now - now < MOST_SKEW + 2 * LEASE_MILLIS, "leases: one ends much too late")
    world.pools = None
    if world.random.random() < _LAST_RUNS:
        service = world.process("last service", lambda s: services.settle(world, s))
        service.skew = 0
        world.scheduler.run()
        check(service.error is None, f"progress: the last run failed: {service.error}")
    world.invariants.on_end(table)
    newest = world.log.newest
    for version in sorted({newest, *world.invariants.protected.values()}):
        check(world.log.can_make(version), f"log: version {version} cannot be made at the end")
        readers.read_version(world, version)
