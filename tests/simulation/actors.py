"""The processes of a history: plain writers, readers, services, maintenance, and people who protect versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from catalog.errors import ConcurrentChangeError, ProtectionError, UnknownNameError, UseError
from catalog.history.events import EVENTS_FOLDER
from catalog.properties.fleet_properties import Pool
from catalog.state import cancel_requests, protection
from catalog.state.fleet_ledger import FleetLedger
from catalog.state.lease import this_process
from catalog.state.line_folder import GRACE_MILLIS
from catalog.state.plan_files import plan_ids
from catalog.state.reclaimed import check_not_reclaimed
from procedures.calls import plan as plan_call
from procedures.calls import protect as protect_call
from procedures.calls import purge as purge_call
from procedures.calls import vacuum as vacuum_call
from procedures.declare.declaration import Call
from procedures.declare.runs import AUTOMATIC, Run
from procedures.fleet.budget import RunBudget
from procedures.lifecycle.log.commits import Commits
from procedures.lifecycle.log.consolidation import LogRequest, consolidate_log
from procedures.lifecycle.log.events import Events
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.report import LEASE_HELD
from procedures.loop.table_optimizer import optimize
from simulation.delta_log import AddedFile, Commit
from simulation.faults import StoreError
from simulation.store import Texts
from simulation.surroundings import ROOT, Session
from simulation.world import HOUR, World

Actor = Callable[[World, Session], None]
DAY = 24 * HOUR
_MOST_WAITS = 6
_STEPS = {"step_min_files": "2", "step_max_files": "4", "step_size_ratio": "0.0"}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"strategy": "StepConsolidation", "options": _STEPS},
    {"strategy": "StepConsolidation", "options": _STEPS, "parallelism": 2},
    {"strategy": "DeleteCompaction", "options": {"min_deleted_ratio": "0"}, "parallelism": 2},
    {"strategy": "DeleteCompaction,StepConsolidation", "options": {"min_deleted_ratio": "0", **_STEPS}},
    {"strategy": "StepConsolidation", "options": _STEPS, "max_bytes": 100},
)


@cache
def settings_of(number: int) -> OptimizeSettings:
    """Settings of a run."""
    return OptimizeSettings.of({"table": "t", **SETTINGS[number]})


# ------------------------------------------------------------------------------------------------------ plain writers


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
    choose = world.random
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
    )
    return write(world, read, commit, reads_all=kind == "MERGE")


# ------------------------------------------------------------------------------------------------------------ readers


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
        check_not_reclaimed(session.table, version)
        if world.is_kept(version):
            world.invariants.check(world.log.can_make(version), f"time travel: version {version} cannot be made")
            _read(world, version, 0)


def _read(world: World, version: int, pause: int) -> None:
    rows: list[int] = []
    for file in list(world.log.live[version].values()):
        try:
            rows += world.rows_of(file)
        except FileNotFoundError as error:
            world.invariants.check(False, f"reads: {error} of version {version} is missing")
        if pause:
            world.scheduler.sleep(pause)
    are_right = len(rows) == len(set(rows)) and frozenset(rows) == world.log.rows[version]
    world.invariants.check(are_right, f"rows: version {version} reads as {sorted(rows)}")


# ----------------------------------------------------------------------------------------------------------- services


def serve(world: World, session: Session) -> None:
    """Optimizes the table again and again, as a service does."""
    for _ in range(1 + world.random.randrange(2)):
        world.rest(4000)
        if world.random.random() < 0.2:
            world.scheduler.sleep(60_000)
        number = world.random.randrange(len(SETTINGS))
        _serve(world, session, settings_of(number))


def _serve(world: World, session: Session, settings: OptimizeSettings) -> None:
    table = session.table
    run = Run.of(table, AUTOMATIC, settings.parameters, world.clock)
    if world.pools is None:
        for _ in range(_MOST_WAITS):
            rows = _tolerated(lambda: optimize(table, settings, run))
            if not rows or rows[-1].reason != LEASE_HELD:
                return
            # As a service does, which looks at the table again.
            world.scheduler.sleep(4000)
        return
    texts = Texts(world.store, "sim:/fleet")
    budget = RunBudget(lambda: FleetLedger(texts), world.pools, None, world.clock)

    def spend(size: int) -> Any:
        nonlocal allowed
        refused = budget.spend(size)
        world.invariants.on_spent(size, refused)
        allowed += size if refused is None else 0
        return refused

    allowed = 0
    with budget.running(run) as refused:
        if refused is None:
            with world.invariants.counted(world.pools[0].max_runs):
                _tolerated(lambda: optimize(table, settings, run, spend=spend))
            within = run.committed_bytes <= allowed
            world.invariants.check(within, f"budget: {run.committed_bytes} bytes were rewritten, {allowed} allowed")


def _tolerated(work: Callable[[], list[Any]]) -> list[Any]:
    """A service goes on after an error of a run."""
    try:
        return work()
    except (UseError, StoreError) as error:
        if type(error).__name__ == "RowsChangedError":
            raise
        return []


def settle(world: World, session: Session) -> None:
    """Optimizes the table once; nothing is in the way."""
    settings = settings_of(3)
    rows = optimize(session.table, settings, Run.of(session.table, AUTOMATIC, settings.parameters, world.clock))
    states = [(row.state, row.reason) for row in rows]
    are_good = all(state == "committed" or reason == "NOTHING_TO_DO" for state, reason in states)
    world.invariants.check(are_good, f"progress: the last run ended with {states}")


def plan(world: World, session: Session) -> None:
    """Stores a plan and executes it."""
    call = Call(session, {}, "call")  # type: ignore[arg-type]
    rows = plan_call.plan(call, "t", max_file_bytes=world.random.choice((20, 40, 60, 100)), store=True)
    world.plans += [row.plan_id for row in rows[:1] if row.plan_id]
    execute(world, session)


def execute(world: World, session: Session) -> None:
    """Executes groups of a stored plan beside others."""
    for _ in range(2):
        world.rest(1500)
        if world.random.random() < 0.2:
            world.scheduler.sleep(60_000)
        world.scheduler.wait(lambda: bool(world.plans), 20)
        known = plan_ids(session.table)
        if known:
            arguments = {"table": "t", "plan": world.random.choice(known), "parallelism": 1 + world.random.randrange(2)}
            settings = OptimizeSettings.of(arguments)
            run = Run.of(session.table, AUTOMATIC, settings.parameters, world.clock)
            _tolerated(lambda s=settings, r=run: optimize(session.table, s, r))  # type: ignore[misc]


# -------------------------------------------------------------------------------------------------------- maintenance


def vacuum(world: World, session: Session) -> None:
    """Deletes old files."""
    world.rest(20_000)
    hours = world.random.choice((3.0, 4.0, 6.0))
    _keep_since(world, world.clock.now() - round(hours * HOUR))
    mode = world.random.choice(("full", "full", "lite"))
    rate = world.random.choice((None, 100.0))
    call = Call(session, {}, "call")  # type: ignore[arg-type]
    vacuum_call.vacuum(call, "t", retention_hours=hours, mode=mode, max_files_per_second=rate)


def purge(world: World, session: Session) -> None:
    """Deletes old history."""
    world.rest(20_000)
    hours = world.random.choice((3, 4, 6))
    _keep_since(world, world.clock.now() - hours * HOUR)
    call = Call(session, {}, "call")  # type: ignore[arg-type]
    purge_call.purge(call, "t", older_than=f"{hours} hours", force=world.random.random() < 0.7)


def _keep_since(world: World, time: int) -> None:
    def keeps(version: int) -> bool:
        commits = world.log.commits
        return version + 1 >= len(commits) or commits[version + 1].time > time

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


# ------------------------------------------------------------------------------------------------------------- people


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
    from catalog.state.lease import leases_of

    world.rest(20_000)
    for lease in leases_of(session.table, world.clock.now()):
        cancel_requests.request_cancel(session.table, lease.run_id, world.clock.now(), this_process())


POOLS = (Pool(None, 400, DAY, 1), Pool(None, 150, DAY, None), Pool(None, None, DAY, 1))
