"""Vacuum, purge and log consolidation."""

from __future__ import annotations

import json

from catalog.history.events import EVENTS_FOLDER
from catalog.state.line_folder import GRACE_MILLIS
from procedures.calls import purge as purge_call
from procedures.calls import vacuum as vacuum_call
from procedures.declare.declaration import Call
from procedures.lifecycle.log.commits import Commits
from procedures.lifecycle.log.consolidation import LogRequest, consolidate_log
from procedures.lifecycle.log.events import Events
from simulation.surroundings.paths import ROOT
from simulation.surroundings.sessions import Session
from simulation.world import HOUR, World


def vacuum(world: World, session: Session) -> None:
    """Deletes old files."""
    world.rest(20_000)
    hours = world.random.choice((3.0, 4.0, 6.0))
    mode = world.random.choice(("full", "full", "lite"))
    vacuum_once(world, session, hours, mode, world.random.choice((None, 100.0)))


def vacuum_once(world: World, session: Session, hours: float, mode: str, rate: float | None) -> None:
    """Deletes files that no version since a time needs.

    Args:
        world: the history.
        session: of the process.
        hours: the retention.
        mode: see ``use.vacuum``.
        rate: files per second.
    """
    _keep_for(world, hours)
    call = Call(session, {}, "call")  # type: ignore[arg-type]
    vacuum_call.vacuum(call, "t", retention_hours=hours, mode=mode, max_files_per_second=rate)


def purge(world: World, session: Session) -> None:
    """Deletes old history."""
    world.rest(20_000)
    world.scheduler.process.memory["purge"] = True
    if world.random.random() < 0.3:
        version = world.random.randrange(world.log.oldest(), world.log.newest + 1)
        world.purged_to = max(world.purged_to, version)
        world.scheduler.process.memory["cutoff"] = lambda kept: kept >= version
        call = Call(session, {}, "call")  # type: ignore[arg-type]
        purge_call.purge(call, "t", older_than=version, force=True)
        return
    purge_once(world, session, world.random.choice((3, 4, 6)), force=world.random.random() < 0.7)


def purge_once(world: World, session: Session, hours: int, *, force: bool) -> None:
    """Deletes history that is older than some hours.

    Args:
        world: the history.
        session: of the process.
        hours: the limit.
        force: see ``use.purge``.
    """
    _keep_for(world, hours)
    call = Call(session, {}, "call")  # type: ignore[arg-type]
    purge_call.purge(call, "t", older_than=f"{hours} hours", force=force)


def _keep_for(world: World, hours: float) -> None:
    def keeps(version: int) -> bool:
        commits = world.log.commits
        # By the clock at the deletion: the process may have been suspended before it read the clock for its limit.
        return version + 1 >= len(commits) or commits[version + 1].time > world.clock.now() - round(hours * HOUR)

    world.scheduler.process.memory["cutoff"] = keeps


def consolidate(world: World, session: Session) -> None:
    """Writes checkpoints, and merges events."""
    for _ in range(2):
        world.rest(10_000)
        consolidate_log(session.table, LogRequest((Events(), Commits()), measures=False))
        if world.random.random() < 0.6:
            return
        # The parts of merged files are old enough to be deleted.
        world.scheduler.sleep(GRACE_MILLIS)


def store_past_events(world: World) -> None:
    """Stores events of the last minutes, so many that they are merged."""
    for number in range(12):
        write_id, started_at = f"past{number}", world.scheduler.now - 60_000 * (12 - number)
        text = json.dumps({"write_id": write_id, "state": "committed", "started_at": started_at})
        world.store.write_text(f"{ROOT}/_use/{EVENTS_FOLDER}/{started_at}-{write_id}.json", text, "events")
        world.invariants.past_events.add(write_id)
