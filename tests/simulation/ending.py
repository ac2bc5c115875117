"""The end of a history: faults are over, leases end, runs and vacuums succeed, and nothing is lost or left."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from catalog.history import event_store
from catalog.history.events import EVENT_KEY, EVENTS_FOLDER
from catalog.state.lease import LEASE_MILLIS, MOST_LEASE_TIMES, leases_of, read_lease
from catalog.state.plan_claims import DONE, STALE, read_group_states
from catalog.state.plan_files import StoredPlan, plan_ids, read_plan
from catalog.table.managed_table import ManagedTable
from simulation.actors import maintenance, readers, services
from simulation.faults import CONFLICT, KILL, LATE_LISTING, LOST_ANSWER, MOST_SKEW, PAUSE, SKEW, THROTTLING
from simulation.surroundings.paths import ROOT
from simulation.surroundings.sessions import Session

if TYPE_CHECKING:
    from simulation.world import World

_LAST_RUNS, _LAST_VACUUMS = 0.5, 0.3
_KEEPING_EVENTS = frozenset({CONFLICT, LOST_ANSWER, KILL, PAUSE, THROTTLING, SKEW})
_KEEPING_GROUPS = frozenset({CONFLICT, KILL, PAUSE, THROTTLING, SKEW})
_KEEPING_RECORDS = frozenset({CONFLICT, LOST_ANSWER, KILL, PAUSE, SKEW, LATE_LISTING})
# State that a run leaves behind only if it is killed or cannot write.
_TEMPORARY = re.compile(
    r"sim:/t/_use/(lease\.json|writes/.*|plans/[^/]*\.writing|plans/.*/runs/.*)|sim:/t/.*-use\d+\.parquet"
)
_OURS = re.compile(r".*-use\d+\.parquet")


def finish(world: World) -> None:
    """Faults are over: leases end, a run makes progress, and everything that must be readable is."""
    check, table = world.invariants.check, Session(world).table
    world.scheduler.nowhere.skew = 0
    if world.is_calm:
        _nothing_is_left(world, table)
    _groups_tell_the_truth(world, table)
    _leases_end(world, table)
    world.pools = None
    if world.random.random() < _LAST_RUNS:
        service = world.process("last service", lambda s: services.settle(world, s))
        service.skew = 0
        world.scheduler.run()
        check(service.error is None, f"progress: the last run failed: {service.error}")
    _events_are_stored(world, table)
    if world.random.random() < _LAST_VACUUMS:
        _vacuum(world)
    newest = world.log.newest
    for version in sorted({newest, *world.invariants.protected.values()}):
        check(world.log.can_make(version), f"log: version {version} cannot be made at the end")
        readers.read_version(world, version)


def _nothing_is_left(world: World, table: ManagedTable) -> None:
    """Without faults, runs delete their leases, claims and records, and the files that they do not commit."""
    check, now = world.invariants.check, world.clock.now()
    check(not leases_of(table, now), "leases: one is left although its run has ended")
    named = {f"{ROOT}/{file.path}" for commit in world.log.commits for file in commit.added}
    left = [path for path in world.store.objects if _TEMPORARY.fullmatch(path) and path not in named]
    check(not left, f"left: {left}")
    for plan in _plans(table):
        running = [state for state in read_group_states(table, plan, now).values() if state.is_running(now)]
        check(not running, "leases: a claim is left although its run has ended")
    ledger = services.ledger_of(world).state()
    check(not ledger.runs, f"budget: a run that has ended is counted: {ledger.runs}")


def _groups_tell_the_truth(world: World, table: ManagedTable) -> None:
    """A group that is done has a commit, and a stale one has none."""
    if not _KEEPING_GROUPS.issuperset(world.faults.kinds):
        return
    committed = {}
    for commit in world.log.commits:
        parameters = json.loads(commit.parameters.get(EVENT_KEY, "{}")).get("parameters") or {}
        committed[parameters.get("plan"), parameters.get("group")] = commit.version
    for plan in _plans(table):
        for number, state in read_group_states(table, plan).items():
            version = committed.get((plan.plan_id, str(number)))
            if state.state == DONE:
                is_right = version is not None and state.version == version
                world.invariants.check(is_right, f"plans: group {number} is in {version}, not {state}")
            elif state.state == STALE:
                world.invariants.check(version is None, f"plans: group {number} is stale, and is in version {version}")


def _plans(table: ManagedTable) -> list[StoredPlan]:
    plans = (read_plan(table, plan_id, "") for plan_id in plan_ids(table))
    return [plan for plan in plans if isinstance(plan, StoredPlan)]


def _leases_end(world: World, table: ManagedTable) -> None:
    check = world.invariants.check
    world.scheduler.now += MOST_LEASE_TIMES * LEASE_MILLIS + 60_000
    if leases_of(table, world.clock.now()):
        # A process whose clock was ahead has left it, and it was too far in the future to count until now.
        check(SKEW in world.faults.kinds, "leases: one does not end")
        world.scheduler.now += MOST_LEASE_TIMES * LEASE_MILLIS
    now = world.clock.now()
    check(not leases_of(table, now), "leases: one does not end")
    for plan in _plans(table):
        running = [s for s in read_group_states(table, plan, now).values() if s.is_running(now)]
        latest = now + MOST_LEASE_TIMES * LEASE_MILLIS
        check(not running or SKEW in world.faults.kinds, "leases: a claim does not end")
        check(all(state.expires_at <= latest for state in running), "leases: a claim ends much too late")
    lease = read_lease(table)
    world.scheduler.now = max(now, 0 if lease is None else lease.expires_at + 1)
    check(world.scheduler.now - now < MOST_SKEW + 2 * LEASE_MILLIS, "leases: one ends much too late")


def _events_are_stored(world: World, table: ManagedTable) -> None:
    """Every event of a commit is stored, unless a state file was damaged, or a purge of a young version deletes it."""
    if not _KEEPING_EVENTS.issuperset(world.faults.kinds) or world.purged_to > 0:
        return
    event_store.reconcile(table)
    stored = set()
    # As readers do, which leave out the parts of merged files.
    for name in event_store.current_files(table, world.clock.now()):
        text = str(world.store.objects[f"{ROOT}/_use/{EVENTS_FOLDER}/{name}"].data)
        stored |= {json.loads(line)["write_id"] for line in text.split("\n")}
    check, past = world.invariants.check, world.invariants.past_events
    check(past <= stored, f"events: {sorted(past - stored)} are lost")
    for commit in world.log.commits:
        if EVENT_KEY in commit.parameters and commit.version in world.log.stored:
            write = json.loads(commit.parameters[EVENT_KEY])["write_id"]
            check(write in stored, f"events: that of version {commit.version} is lost")


def _vacuum(world: World) -> None:
    """Half a day later, a vacuum deletes every file that no version needs, and no other."""
    kept = _protected_versions(world)
    if kept is None or not all(map(world.log.can_make, kept)):
        # Such a protection stops a vacuum.
        return
    world.scheduler.now += 13 * maintenance.HOUR
    mode = world.random.choice(("full", "lite"))
    process = world.process("last vacuum", lambda s: maintenance.vacuum_once(world, s, 3.0, mode, None))
    process.skew = 0
    world.scheduler.run()
    check, log = world.invariants.check, world.log
    check(process.error is None, f"progress: the last vacuum failed: {process.error}")
    versions = {log.newest, *kept}
    needed = {f"{ROOT}/{path}" for version in versions for file in log.live[version].values() for path in file.needs}
    left = {path for path in world.store.objects if path.startswith(f"{ROOT}/") and path.endswith(".parquet")} - needed
    if mode == "lite":
        # It finds what the log names, and the files of our rewrites.
        is_recorded = _KEEPING_RECORDS.issuperset(world.faults.kinds)
        named = {f"{ROOT}/{path}" for commit in log.commits for file in commit.removed for path in file.needs}
        left = {path for path in left if path in named or (is_recorded and _OURS.fullmatch(path))}
    check(not left, f"left: a vacuum in mode {mode} leaves {sorted(left)}")


def _protected_versions(world: World) -> list[int] | None:
    """The versions that are protected, for certain or perhaps; None if a file cannot be read."""
    start = f"{ROOT}/_use/protected/"
    try:
        return [json.loads(str(o.data))["version"] for path, o in world.store.objects.items() if path.startswith(start)]
    except (ValueError, KeyError):
        return None
