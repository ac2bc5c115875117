"""Disturbs every operation in real Spark sessions at every named point, on bad disks, and by kills at random moments.

    make test-faults SHARD=1/4 KILLS=500

Each case has a small table of its own. Afterwards, its rows are compared by a reader that shares no code with the
product, the next run must succeed, and a vacuum must leave no file that the table does not need. What is done is kept
in ``build/faults``, so that a second call goes on; delete the folder to begin anew. Ends with 0 if every promise held.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "support"), str(ROOT)]

from shard import Shard  # noqa: E402

from faults import cases, damage, disks, kills, store  # noqa: E402
from faults.judge import Tables  # noqa: E402
from faults.results import Outcome, Results, report  # noqa: E402
from faults.worker_process import WorkerEndedError, WorkerProcess  # noqa: E402

_ALL = "templates"
PARTS = ("points", "disks", "damage", "store", "kills")


class Session:
    """The worker of this process, which is started anew after it has ended by itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._worker: WorkerProcess | None = None

    @property
    def worker(self) -> WorkerProcess:
        """A worker that runs."""
        if self._worker is None or not self._worker.is_alive:
            self._worker = WorkerProcess(self.folder)
        return self._worker

    def end(self) -> None:
        """Ends the worker."""
        if self._worker is not None:
            self._worker.kill()
            shutil.rmtree(self._worker.folder, ignore_errors=True)
            self._worker = None


def facts_of_operations(session: Session, folder: Path, only: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Template, points and seconds of operations, from runs without a fault; each is measured once, and kept.

    Args:
        session: has the worker.
        folder: where they are kept.
        only: names of operations; None for all.
    """
    file = folder / "operations.json"
    facts: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    wanted = only or list(facts.get(_ALL, {}))
    if not wanted or any(name not in facts for name in wanted):
        known = session.worker.ask("operations")["templates"]
        facts[_ALL] = known
        for operation in only or known:
            if operation in facts:
                continue
            tables = Tables(folder, known)
            tables.make_missing(session.worker, [known[operation]])
            path = tables.copy(operation)
            recorded = session.worker.ask("record", operation=operation, path=str(path))
            facts[operation] = {"template": known[operation], **recorded}
            tables.remove(path)
            print(f"{operation}: {len(recorded['points'])} points, {recorded['seconds']:.1f} s", flush=True)
            file.write_text(json.dumps(facts, indent=1))
    return {name: facts[name] for name in only or facts[_ALL]}


class Case(Protocol):
    """A case of any kind."""

    @property
    def name(self) -> str:
        """The same each time."""

    @property
    def operation(self) -> str:
        """The operation that is disturbed."""

    @property
    def kind(self) -> str:
        """The kind of the fault."""


@dataclass
class Campaign:
    """The cases of one call.

    Attributes:
        session: has the worker.
        facts: of the operations.
        tables: for the operations.
        results: what is done.
        shard: which cases belong to this call.
        deadline: no case begins later; monotonic seconds.
    """

    session: Session
    facts: dict[str, dict[str, Any]]
    tables: Tables
    results: Results
    shard: Shard
    deadline: float

    def is_over(self) -> bool:
        """Whether no further case may begin."""
        return time.monotonic() > self.deadline

    def points(self) -> None:
        """Faults at the named points."""
        for operation, fact in self.facts.items():
            found = cases.cases_of(operation, fact["points"], set(fact["writing"]))
            self._run(found, lambda case: cases.run(self.session.worker, self.tables, case))

    def disks(self) -> None:
        """Disks without space, and read-only ones."""
        disk = disks.Disk(self.session.folder / "disk")
        try:
            with disk.mounted():
                pass
        except (PermissionError, FileNotFoundError) as error:
            print(f"full and read-only disks are left out, since this user may not mount one: {error}")
            return
        self._run(disks.cases_of(self.facts), lambda case: disks.run(self.session.worker, self.tables, case, disk))

    def damage(self) -> None:
        """Damaged files."""
        self.tables.make_missing(self.session.worker, [damage.TEMPLATE])
        found = [case for case in damage.cases_of(self.tables) if case.operation in self.facts]
        self._run(found, lambda case: damage.run(self.session.worker, self.tables, case))

    def store(self) -> None:
        """An S3 server in trouble."""
        for seed, kind in enumerate(store.KINDS):
            name = f"store / {kind} / {seed}"
            if self.is_over():
                return
            done = any(outcome.case.startswith(name) for outcome in self.results.outcomes)
            if self.shard.has(name) and not done:
                self.session.end()
                for outcome in store.run(kind, seed, self.session.folder / f"store-{seed}"):
                    self.results.add(outcome)

    def kills(self, count: int) -> None:
        """Kills of processes.

        Args:
            count: of the operations that are killed, in all shards.
        """
        self.session.end()
        mine = range(self.shard.number - 1, count, self.shard.of)
        numbers = [number for number in mine if not self.results.has(f"kill {number}")]
        seconds = {name: fact["seconds"] for name, fact in self.facts.items()}
        runner = kills.Kills(self.session.folder, self.tables, seconds)
        runner.run(numbers, self.results.add, self.is_over)
        print(f"{runner.processes} processes were killed in this call")

    def _run(self, found: Iterable[Any], run: Callable[[Any], Outcome]) -> None:
        case: Case
        for case in found:
            if self.is_over():
                return
            if self.shard.has(case.name) and not self.results.has(case.name):
                try:
                    self.results.add(run(case))
                except WorkerEndedError as error:
                    text = f"the process ended or hung: {error}"
                    self.results.add(Outcome(case.name, case.operation, case.kind, "", text))


def main() -> int:
    """Returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", type=Shard, default="1/1")
    parser.add_argument("--kills", type=int, default=500, help="operations that are killed, in all shards")
    parser.add_argument("--minutes", type=float, default=38, help="no case begins later")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part of the cases; may be repeated")
    parser.add_argument("--operation", action="append", help="only this operation; may be repeated")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "faults")
    given = parser.parse_args()
    deadline = time.monotonic() + 60 * given.minutes
    results, session = Results(given.folder / "results.jsonl"), Session(given.folder / "workers")
    parts = given.only or PARTS
    try:
        facts = facts_of_operations(session, given.folder, given.operation)
        tables = Tables(given.folder, {name: fact["template"] for name, fact in facts.items()})
        campaign = Campaign(session, facts, tables, results, given.shard, deadline)
        for part in parts:
            if part == "kills":
                campaign.kills(given.kills)
            else:
                getattr(campaign, part)()
    finally:
        session.end()
    print(report(results))
    if campaign.is_over():
        print("the time is over: call again to go on")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
