"""Services, and processes that execute groups of a stored plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from catalog.errors import UseError
from catalog.properties.fleet_properties import Pool
from catalog.state.fleet_ledger import FleetLedger
from catalog.state.plan_files import plan_ids
from procedures.calls import plan as plan_call
from procedures.declare.declaration import Call
from procedures.declare.runs import AUTOMATIC, Run
from procedures.fleet.budget import RunBudget
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.report import LEASE_HELD, OptimizeRow
from procedures.loop.table_optimizer import optimize
from simulation.faults import StoreError
from simulation.store import Texts
from simulation.surroundings.sessions import Session
from simulation.world import HOUR, World

DAY = 24 * HOUR
_MOST_WAITS = 6
_STEPS = {"step_min_files": "2", "step_max_files": "4", "step_size_ratio": "0.0"}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"strategy": "StepConsolidation", "options": _STEPS},
    {"strategy": "StepConsolidation", "options": _STEPS, "parallelism": 2},
    {"strategy": "DeleteCompaction", "options": {"min_deleted_ratio": "0"}, "parallelism": 2},
    {"strategy": "DeleteCompaction,StepConsolidation", "options": {"min_deleted_ratio": "0", **_STEPS}},
    {"strategy": "StepConsolidation", "options": _STEPS, "max_bytes": 100},
    {"strategy": "StepConsolidation", "options": _STEPS, "quiet_period": "3 seconds"},
)


@cache
def settings_of(number: int) -> OptimizeSettings:
    """Settings of a run."""
    return OptimizeSettings.of({"table": "t", **SETTINGS[number]})


def serve(world: World, session: Session) -> None:
    """Optimizes the table again and again, as a service does."""
    for _ in range(1 + world.random.randrange(2)):
        world.rest(4000)
        if world.random.random() < 0.2:
            world.scheduler.sleep(60_000)
        settings = settings_of(world.random.randrange(len(SETTINGS)))
        world.scheduler.process.memory["quiet"] = settings.quiet_millis
        _serve(world, session, settings)


def ledger_of(world: World) -> FleetLedger:
    """The ledger of the fleet's budgets."""
    return FleetLedger(Texts(world.store, "sim:/fleet"))


def _serve(world: World, session: Session, settings: OptimizeSettings) -> None:
    table = session.table
    run = Run.of(table, AUTOMATIC, settings.parameters, world.clock)
    if world.pools is None:
        for _ in range(_MOST_WAITS):
            rows = _tolerated(world, lambda: optimize(table, settings, run))
            if not rows or rows[-1].reason != LEASE_HELD:
                return
            # As a service does, which looks at the table again.
            world.scheduler.sleep(4000)
        return
    budget = RunBudget(lambda: ledger_of(world), world.pools, None, world.clock)

    def spend(size: int) -> Any:
        nonlocal allowed
        refused = budget.spend(size)
        world.observation.on_spent(size, refused)
        allowed += size if refused is None else 0
        return refused

    allowed = 0
    with budget.running(run) as refused:
        if refused is None:
            with world.observation.counted(world.pools[0].max_runs):
                _tolerated(world, lambda: optimize(table, settings, run, spend=spend))
            within = run.committed_bytes <= allowed
            world.invariants.check(within, f"budget: {run.committed_bytes} bytes were rewritten, {allowed} allowed")


def _tolerated(world: World, work: Callable[[], list[OptimizeRow]]) -> list[OptimizeRow]:
    """A service goes on after an error of a run."""
    try:
        return work()
    except (UseError, StoreError) as error:
        world.invariants.on_error("a run", error)
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
        if world.random.random() < 0.3:
            world.scheduler.sleep(60_000)
        world.scheduler.wait(lambda: bool(world.plans), 20)
        known = plan_ids(session.table)
        if known:
            arguments = {"table": "t", "plan": world.random.choice(known), "parallelism": 1 + world.random.randrange(2)}
            settings = OptimizeSettings.of(arguments)
            run = Run.of(session.table, AUTOMATIC, settings.parameters, world.clock)
            _tolerated(world, lambda s=settings, r=run: optimize(session.table, s, r))  # type: ignore[misc]


POOLS = (Pool(None, 400, DAY, 1), Pool(None, 150, DAY, None), Pool(None, None, DAY, 1))
