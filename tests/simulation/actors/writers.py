"""Plain writers of Delta: they append, delete, update and merge."""

from __future__ import annotations

from typing import Any

from catalog.errors import ConcurrentChangeError
from simulation.delta_log import AddedFile, Commit
from simulation.surroundings.paths import ROOT
from simulation.surroundings.sessions import Session
from simulation.world import World


def write(world: World, read: int, commit: Commit, *, reads_all: bool = False) -> bool:
    """Commits as a plain writer; returns whether it is certain that the rows are there."""
    try:
        world.log.commit(commit, read, reads_all)
    except ConcurrentChangeError:
        return False
    return True


def append(world: World, session: Session) -> None:
    """Appends files."""
    for _ in range(1 + world.random.randrange(3)):
        world.rest(4000)
        rows = world.new_rows(1 + world.random.randrange(4))
        file = world.new_data(world.new_name("w"), rows, "append")
        write(world, world.log.newest, Commit(-1, -1, "WRITE", (file,), data_change=True, inserted=frozenset(rows)))


def change(world: World, session: Session) -> None:
    """Deletes, updates or merges rows, with deletion vectors or new files."""
    for _ in range(1 + world.random.randrange(3)):
        world.rest(4000)
        for _ in range(3):
            if _changed(world):
                break


def _changed(world: World) -> bool:
    choose, began = world.random, world.scheduler.now
    read = world.log.read("begin")
    live = sorted(world.log.live[read].values(), key=lambda file: file.path)
    if not live:
        return True
    taken = choose.sample(live, min(len(live), 1 + choose.randrange(2)))
    kind, added, deleted, inserted = choose.choice(("DELETE", "UPDATE", "MERGE")), [], set(), set()
    for file in taken:
        stored: Any = world.store.objects[f"{ROOT}/{file.path}"].data
        places = [p for p in range(len(stored)) if p not in file.hidden]
        gone = frozenset(choose.sample(places, min(len(places), 1 + choose.randrange(2))))
        deleted |= {stored[p] for p in gone}
        new = world.new_rows(len(gone)) if kind != "DELETE" else ()
        inserted |= set(new)
        if choose.random() < 0.5:
            hidden = file.hidden | gone
            vector = world.new_name("dv")
            world.store.put_data(f"{ROOT}/{vector}", hidden, 10, "write vector")
            added.append(AddedFile(file.path, file.size, file.rows, file.time, vector, hidden, file.tags))
            if new:
                added.append(world.new_data(world.new_name("u"), new, "write vector"))
        else:
            rest = tuple(stored[p] for p in places if p not in gone) + new
            if rest:
                added.append(world.new_data(world.new_name("u"), rest, "rewrite rows"))
    commit = Commit(
        -1,
        -1,
        kind,
        tuple(added),
        tuple(taken),
        world.clock.now(),
        True,
        inserted=frozenset(inserted),
        deleted=frozenset(deleted),
        metrics={"executionTimeMs": str(world.scheduler.now - began)},
    )
    return write(world, read, commit, reads_all=kind == "MERGE")
