"""Readers of the newest version and of older ones."""

from __future__ import annotations

from catalog.errors import VersionError
from catalog.state.reclaimed import check_not_reclaimed
from simulation.surroundings.sessions import Session
from simulation.world import World


def read(world: World, session: Session) -> None:
    """Reads a version slowly, while others replace its files."""
    for _ in range(2):
        version = world.log.read()
        _read(world, version, world.random.randrange(20_000))
        world.rest(5000)


def read_version(world: World, version: int) -> None:
    """Reads a version at once."""
    _read(world, version, 0)


def travel(world: World, session: Session) -> None:
    """Reads an old version that must still be there."""
    for _ in range(2):
        world.rest(30_000)
        newest = world.log.read()
        version = world.random.randrange(newest + 1)
        if not world.is_kept(version):
            continue
        try:
            check_not_reclaimed(session.table, version)
        except VersionError as error:
            world.invariants.check(not world.is_kept(version), f"time travel: {error}")
            continue
        if world.is_kept(version):
            world.invariants.check(world.log.can_make(version), f"time travel: version {version} cannot be made")
            _read(world, version, 0)


def _read(world: World, version: int, pause: int) -> None:
    rows: list[int] = []
    for file in list(world.log.live[version].values()):
        try:
            rows += world.rows_of(file)
        except FileNotFoundError as error:
            if version < world.purged_to:
                return
            world.invariants.check(False, f"reads: {error} of version {version} is missing")
        if pause:
            world.scheduler.sleep(pause)
    are_right = len(rows) == len(set(rows)) and frozenset(rows) == world.log.rows[version]
    world.invariants.check(are_right, f"rows: version {version} reads as {sorted(rows)}")
