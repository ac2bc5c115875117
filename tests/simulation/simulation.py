"""One history: a table with a past, processes that work on it at the same time, and what must be true at the end."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from simulation.actors import maintenance, people, readers, services, writers
from simulation.delta_log import AddedFile, Commit
from simulation.ending import finish
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
    ("plan", "plan", "execute", "execute", "change", "append"),
    ("vacuum", "serve", "append", "read", "protect"),
    ("consolidate", "consolidate", "serve", "change"),
)
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
    return world.run(_set_up, finish)


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
    if "plan" not in chosen and choose.random() < (0.35 if chosen.count("serve") > 1 else 0.2):
        world.pools = (choose.choice(services.POOLS),)
        world.observation.most_spent = world.pools[0].max_bytes
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
