"""The faults at the named points of operations, one case each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from faults import oracle
from faults.judge import Tables, problem_after, problem_before, unclear
from faults.results import Outcome
from faults.worker_process import WorkerProcess

ERROR, LOST_ANSWER, DELAY = "error", "lost answer", "delay"
VANISHED, DENIED = "folder vanishes", "right is lost"
_FIRST, _LAST = "first", "last"


@dataclass(frozen=True)
class FaultCase:
    """A fault at a point.

    Attributes:
        operation: that is disturbed.
        point: where.
        nth: which call of the point, from 1 on.
        which: the same as ``first`` or ``last``.
        kind: of the fault.
    """

    operation: str
    point: str
    nth: int
    which: str
    kind: str

    @property
    def name(self) -> str:
        """The same each time, so that a second call knows what is done."""
        return f"{self.operation} / {self.point} / {self.which} / {self.kind}"


def cases_of(operation: str, points: Mapping[str, int], writing: set[str]) -> Iterator[FaultCase]:
    """The cases of an operation.

    Args:
        operation: its name.
        points: how often a run without a fault reaches each point.
        writing: the points whose calls change something.
    """
    for point in sorted(points):
        count = points[point]
        calls = [(1, _FIRST)] if count == 1 else [(1, _FIRST), (count, _LAST)]
        for nth, which in calls:
            yield FaultCase(operation, point, nth, which, ERROR)
            if point in writing:
                yield FaultCase(operation, point, nth, which, LOST_ANSWER)
        is_marked = point in writing or point.startswith("step ") or point in ("begin transaction", "snapshot")
        if is_marked:
            for kind in (DELAY, VANISHED, DENIED):
                yield FaultCase(operation, point, 1, _FIRST, kind)


def run(worker: WorkerProcess, tables: Tables, case: FaultCase) -> Outcome:
    """Runs a case, and judges the table afterwards."""
    path = tables.copy(case.operation)
    rows = tables.rows_of(case.operation)
    answer = worker.ask(
        "fault", operation=case.operation, path=str(path), point=case.point, nth=case.nth, kind=case.kind
    )
    struck = answer.pop("struck")
    appended = answer.pop("appended")
    failed = unclear(answer) or problem_before(path, case.operation, rows, appended=appended)
    if failed is None:
        before = oracle.ids(path)
        recovered = worker.ask("recover", operation=case.operation, path=str(path))
        failed = f"{recovered}" if recovered else problem_after(path, case.operation, rows, before)
    if failed is None:
        tables.remove(path)
    else:
        failed = f"{failed}; the operation had ended with {answer or 'success'}; table {path.name}"
    where = case.point if struck else ""
    return Outcome(case.name, case.operation, case.kind, where, failed, answer.get("code", ""))
