"""Staged races: an action between two steps of a rewrite, and what must hold afterwards."""

import threading

from placement import check_placement
from tables import DeltaTable

from procedures.declare.runs import Run
from procedures.layout.step import Step, ignore_step
from procedures.loop import table_optimizer as engine
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.planner import TablePlanner
from procedures.loop.report import OptimizeRow

# Those between which another writer makes a difference.
STEPS = (Step.READ, Step.WRITE, Step.VERIFY, Step.COMMIT)
DEFAULTS = DEFAULT_ARGUMENTS


def settings_of(**given) -> OptimizeSettings:
    return OptimizeSettings.of({**DEFAULTS, "table": "t", **given})


class At:
    """An observer that acts once, before a step begins."""

    def __init__(self, step, action):
        self.step, self.action, self.done = step, action, False
        self.seen = []

    def __call__(self, step):
        self.seen.append(step)
        if step == self.step and not self.done:
            self.done = True
            self.action()


class Counted:
    """Inside it, the groups of every plan are counted: each must be one committed or failed row of the report."""

    def __init__(self, monkeypatch):
        self.groups = []
        real = TablePlanner.plan

        def counting(*arguments):
            plan = real(*arguments)
            self.groups.extend(plan.groups)
            return plan

        monkeypatch.setattr(TablePlanner, "plan", counting)

    def matches(self, report: list[OptimizeRow]) -> bool:
        return len(self.groups) == sum(row.state in ("committed", "failed") for row in report)


def run_of(table: DeltaTable, trigger: str = "call") -> Run:
    return Run.of(table.managed, trigger, {})


def optimize(table: DeltaTable, observe=ignore_step, run: Run | None = None, **given) -> list[OptimizeRow]:
    return engine.optimize(table.managed, settings_of(**given), run or run_of(table), observe)


def strays(table: DeltaTable) -> set[str]:
    """Data files on disk that no commit ever named: what a loser must delete."""
    named = {add["path"] for v in range(table.version + 1) for add in table.added(v)}
    return {f for f in table.on_disk() if f not in named and "deletion_vector" not in f}


def check_sound(table: DeltaTable, oracle: DeltaTable) -> None:
    """The rows are those of a table that nobody optimized, no file of ours is left over, and all can be indexed."""
    expected = oracle.checksum()
    assert table.checksum() == expected
    # A statement of Delta's may leave an empty file behind, and leaves it on both tables.
    assert len(strays(table)) == len(strays(oracle))
    assert "failed" not in [row.state for row in optimize(table)]
    assert table.checksum() == expected
    assert not table.unindexed
    assert check_placement(table) == expected[0]


class Meeting:
    """Lets threads wait until a number of them is at a place; a deadline makes a test fail rather than hang."""

    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties)

    def wait(self) -> None:
        self._barrier.wait(timeout=300)
