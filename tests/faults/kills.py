"""Kills of whole processes while they run operations, several at a time; another process judges and goes on."""

from __future__ import annotations

import random
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import oracle
from faults.judge import Tables, problem_after, problem_before
from faults.results import Outcome
from faults.worker_process import WorkerEndedError, WorkerProcess

THREADS = 5
_MOST_SECONDS = 300
# Tables for each thread, and what is added to the numbers of the later ones.
_LAPS, _LAP = 4, 1_000_000


@dataclass(frozen=True)
class Killed:
    """An operation that was under way when its process was killed."""

    number: int
    operation: str
    path: Path
    where: str


class Kills:
    """Kills processes.

    Args:
        folder: of the workers.
        tables: for the operations.
        seconds: how long each operation takes when it is alone.
    """

    def __init__(self, folder: Path, tables: Tables, seconds: Mapping[str, float]) -> None:
        self._folder, self._tables, self._seconds = folder, tables, seconds
        self._operations = list(seconds)
        self._killed: list[Killed] = []
        self.processes = 0

    def run(self, numbers: Sequence[int], add: Callable[[Outcome], None], is_over: Callable[[], bool]) -> None:
        """Kills operations until each number has been one that was under way.

        Args:
            numbers: of the kills that are wanted.
            add: gets the outcomes.
            is_over: whether no further process is to be started.
        """
        waiting = deque(numbers)
        while waiting and not is_over():
            worker = WorkerProcess(self._folder)
            try:
                self._judge(worker, add)
                batch = [waiting.popleft() for _ in range(min(len(waiting), THREADS))]
                killed = self._race(worker, batch)
            finally:
                worker.kill()
            self.processes += 1
            self._killed = killed
            waiting.extendleft(reversed([n for n in batch if n not in {each.number for each in killed}]))
            shutil.rmtree(worker.folder, ignore_errors=True)
        if self._killed:
            worker = WorkerProcess(self._folder)
            try:
                self._judge(worker, add)
            finally:
                worker.kill()

    def _race(self, worker: WorkerProcess, numbers: Sequence[int]) -> list[Killed]:
        """Lets a worker run operations of all kinds, and kills it at a random moment; those under way were killed."""
        chance = random.Random(f"kill {numbers[0]}")
        # Each thread goes on with further tables, so that the moment of the kill is in the middle of some operation.
        chosen = {number + lap * _LAP: self._operation(number + lap * 7) for lap in range(_LAPS) for number in numbers}
        paths = {number: self._tables.copy(operation) for number, operation in chosen.items()}
        cases = [{"number": n, "operation": operation, "path": str(paths[n])} for n, operation in chosen.items()]
        seconds = sum(self._seconds[chosen[number]] for number in numbers)
        worker.send("race", cases=cases, threads=len(numbers))
        deadline = time.monotonic() + _MOST_SECONDS
        while len([line for line in worker.notes() if line.startswith("begin ")]) < len(numbers):
            if not worker.is_alive or time.monotonic() > deadline:
                raise WorkerEndedError(f"no operation has begun: {worker.notes()[-3:]}")
            time.sleep(0.02)
        time.sleep(chance.random() * max(seconds, 1.0))
        worker.kill()
        under_way = _under_way(worker.notes())
        killed = []
        free = deque(sorted(numbers))
        for number, operation in chosen.items():
            if number in under_way and free:
                killed.append(Killed(free.popleft(), operation, paths[number], under_way[number]))
            else:
                self._tables.remove(paths[number])
        return killed

    def _operation(self, number: int) -> str:
        return self._operations[number % len(self._operations)]

    def _judge(self, worker: WorkerProcess, add: Callable[[Outcome], None]) -> None:
        """Judges the tables of the process that was killed last."""
        before: dict[int, list[int]] = {}
        problems: dict[int, str | None] = {}
        for each in self._killed:
            rows = self._tables.rows_of(each.operation)
            problems[each.number] = problem_before(each.path, each.operation, rows)
            if problems[each.number] is None:
                before[each.number] = oracle.ids(each.path)
        sound = [each for each in self._killed if problems[each.number] is None]
        cases = [{"number": e.number, "operation": e.operation, "path": str(e.path)} for e in sound]
        answers: dict[str, Any] = worker.ask("recover_all", cases=cases)["answers"]
        for each in self._killed:
            problem = problems[each.number]
            if problem is None:
                answer = answers[str(each.number)]
                rows = self._tables.rows_of(each.operation)
                problem = str(answer) if answer else problem_after(each.path, each.operation, rows, before[each.number])
            if problem is None:
                self._tables.remove(each.path)
            else:
                problem = f"{problem}; killed at '{each.where}'; table {each.path.name}"
            add(Outcome(f"kill {each.number}", each.operation, "kill", each.where, problem))
        self._killed = []


def _under_way(notes: Sequence[str]) -> dict[int, str]:
    """The numbers of the operations that have begun and not ended, each with the last point that it had reached."""
    reached: dict[int, str] = {}
    for line in notes:
        kind, _, rest = line.partition(" ")
        number, _, point = rest.partition(" ")
        if not number.isdigit():
            continue
        if kind == "end":
            reached.pop(int(number), None)
        elif kind == "begin" or int(number) in reached:
            reached[int(number)] = point or "begin"
    return reached
