"""Compares the systems that lay out tables of a lakehouse: the same data, histories and budgets for all.

Each system runs in a process and an environment of its own. All take turns, so that their times can be compared in
pairs. Results are kept as long as the code of the workload, of the benchmark and of the system stays the same;
``--again`` measures anew. The summary and its tables are written to ``build/bench``; ``--record`` writes those of the
repository.

    make bench                                              # half an hour on two cores
    make bench ARGS="--workloads tpch --scale 1 --systems use delta-liquid --budgets 0.5 2 8 --rounds 10"
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from datetime import datetime, timezone
from itertools import product
from pathlib import Path

from peers import page
from peers.environments import python_of
from peers.object_store import served
from peers.summary import summary_of
from peers.systems import SYSTEMS
from peers.turns import READY, TIMED
from peers.workloads import customers, page_views, persons, sensors, tpch_refreshes

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
JAR = ROOT / "jars-build" / "target" / "use-shim-test.jar"
RESULTS = ROOT / "bench" / "results" / "peers.json"
WORKLOADS = {
    "tpch": (tpch_refreshes.make, 4),
    "page-views": (page_views.make, 8),
    "sensors": (sensors.make, 6),
    "customers": (customers.make, 4),
    "persons": (persons.make, 4),
}
LONGEST_TURN = 2 * 3600.0  # seconds, up to scale 1
PRODUCT = ("otree", "catalog", "procedures", "sql_ext", "jars-build/src/main")
MEASURING = ("systems", "worker", "workload", "measures", "answers")
QUICK = ("use", "delta", "delta-liquid", "delta-zorder", "iceberg-zorder")


def make_workload(name: str, scale: float, steps: int) -> Path:
    """Makes a workload, unless the code of today has made it; returns its folder."""
    folder = BUILD / f"{name}-{scale:g}-{steps}"
    rules, made_by = _rules(), folder / "made-by"
    if not made_by.exists() or made_by.read_text("ascii") != rules:
        print(f"making {folder.name}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        WORKLOADS[name][0](folder, scale, steps)
        made_by.write_text(rules, "ascii")
    return folder


def _rules() -> str:
    """A digest of the code that makes workloads."""
    return _digest(Path(__file__).parent / "workloads")


def code_of(system: str) -> str:
    """A digest of the code that decides about the results of a system, apart from workloads."""
    own = [ROOT / name for name in PRODUCT] if system == "use" else []
    return _digest(*own, *(Path(__file__).parent / f"{name}.py" for name in MEASURING))


def _digest(*places: Path) -> str:
    files = [each for place in places for each in (place.rglob("*") if place.is_dir() else (place,))]
    sources = sorted(each for each in files if each.suffix in (".py", ".scala", ".java"))
    return hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()


class Worker:
    """A process in which one system runs a workload."""

    def __init__(
        self,
        system: str,
        workload: Path,
        budget: float,
        rounds: int,
        home: Path,
        result: Path,
        store: str | None,
        workers: int,
        longest_turn: float,
    ) -> None:
        """Starts it.

        Args:
            system: its name.
            workload: the folder of the workload.
            budget: in sizes of the tables that change.
            rounds: how often a measurement runs each query.
            home: an empty folder for its tables.
            result: a file for the figures.
            store: the address of a server whose bucket has the tables; None for local files.
            workers: processes that run tasks; 0 = the driver.
            longest_turn: seconds after which it counts as hanging.
        """
        self.name = system
        self._longest_turn = longest_turn
        self.result = result
        self._log = result.with_suffix(".log").open("w", encoding="utf-8")
        python = python_of(SYSTEMS[system].environment)
        command = [python, "-m", "peers.worker", system, workload, home, JAR, result]
        command += ["--budget", str(budget), "--rounds", str(rounds), *(["--store", store] if store else [])]
        command += ["--workers", str(workers)]
        settings = {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT / "bench")}
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=home,
            env=os.environ | settings,
        )

    def wait(self) -> str | None:
        """Waits until the system asks for something; returns ``READY`` or ``TIMED``, or None if it has ended.

        A process that hangs is killed.
        """
        assert self._process.stdout is not None
        watchdog = threading.Timer(self._longest_turn, self._process.kill)
        watchdog.start()
        try:
            for line in self._process.stdout:
                if line.strip() in (READY, TIMED):
                    return line.strip()
                self._log.write(line)
        finally:
            watchdog.cancel()
        return None

    def go_on(self) -> None:
        """Lets the system go on."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()


def run_in_turn(
    results: Mapping[str, Path],
    workload: Path,
    budget: float,
    rounds: int,
    store: str | None = None,
    processes: int = 0,
    longest_turn: float = LONGEST_TURN,
) -> None:
    """Runs a workload on some systems: side by side where counts are taken, and one after the other where time is.

    Args:
        results: files for the figures, by system.
        workload: the folder of the workload.
        budget: in sizes of the tables that change.
        rounds: how often a measurement runs each query.
        store: the address of a server whose bucket has the tables; None for local files.
        processes: those that run tasks for each system; 0 = its driver.
        longest_turn: seconds after which a system counts as hanging.
    """
    with ExitStack() as stack:
        workers = []
        for system, result in results.items():
            result.parent.mkdir(parents=True, exist_ok=True)
            # If the run fails, there are no figures, and not those of an earlier one.
            result.unlink(missing_ok=True)
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD)))
            workers.append(Worker(system, workload, budget, rounds, home, result, store, processes, longest_turn))
            stack.callback(workers[-1].end)
        turn = 0
        while workers:
            start = time.monotonic()
            # All of them run until each has something to be timed, or has ended.
            states = {worker: worker.wait() for worker in workers}
            print(f"  {time.monotonic() - start:.0f} s side by side", flush=True)
            workers = [worker for worker in workers if states[worker] is not None]
            while any(states[worker] == READY for worker in workers):
                # The order changes, so that no system always runs after the same one.
                for worker in workers if turn % 2 else workers[::-1]:
                    if states[worker] == READY:
                        states[worker] = _timed_turn(worker)
                turn += 1
            workers = [worker for worker in workers if states[worker] is not None]
            for worker in workers:
                worker.go_on()


def _timed_turn(worker: Worker) -> str | None:
    start = time.monotonic()
    worker.go_on()
    state = worker.wait()
    print(f"  {worker.name}: {time.monotonic() - start:.0f} s", flush=True)
    return state


def main() -> None:
    """Makes the workloads, runs the systems, and stores a summary and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(QUICK))
    parser.add_argument("--all-systems", action="store_true", help=f"all {len(SYSTEMS)} systems")
    parser.add_argument("--scale", type=float, default=0.1, help="1 is a gigabyte of TPC-H")
    parser.add_argument("--steps", type=int, help="length of a history, by default another one for each workload")
    parser.add_argument(
        "--budgets", type=float, nargs="*", default=[2.0], help="bytes to rewrite, in sizes of the table"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often a query is timed, after a round that counts; 0: no times"
    )
    parser.add_argument("--s3", action="store_true", help="tables in a bucket of a server on this machine; counts only")
    parser.add_argument(
        "--workers", type=int, default=0, help="processes with a core each that run the tasks of a system; needs --s3"
    )
    parser.add_argument(
        "--at-once",
        type=int,
        default=5,
        help="systems side by side while counts are taken, 4 GB of memory each",
    )
    parser.add_argument("--again", action="store_true", help="measures what has been measured before")
    parser.add_argument("--record", action="store_true", help=f"stores the summary in {RESULTS.relative_to(ROOT)}")
    wanted = parser.parse_args()
    summary = RESULTS if wanted.record else BUILD / "peers.json"
    if wanted.workers and not wanted.s3:
        parser.error("--workers needs --s3: only a server counts the requests of all processes")
    if wanted.s3 and importlib.util.find_spec("moto") is None:
        parser.error("--s3 needs a server: .venv/bin/pip install --editable '.[object-stores]'")
    systems = list(SYSTEMS) if wanted.all_systems else wanted.systems
    BUILD.mkdir(parents=True, exist_ok=True)
    failed = []
    with served() if wanted.s3 else nullcontext() as store:
        for name, budget in product(wanted.workloads, wanted.budgets):
            steps = WORKLOADS[name][1] if wanted.steps is None else wanted.steps
            folder = make_workload(name, wanted.scale, steps)
            place = [*(["s3"] if store else []), *([f"{wanted.workers}w"] if wanted.workers else [])]
            key = " ".join([name, f"{wanted.scale:g}", str(steps), f"{budget:g}", *place])
            stem = f"{key.replace(' ', '-')}-{wanted.rounds}"
            stored = {each: BUILD / "raw" / f"{stem}-{each}.json" for each in systems}
            made = (folder / "made-by").stat().st_mtime
            missing = [each for each in systems if wanted.again or not _is_current(stored[each], made, code_of(each))]
            for first in range(0, len(missing), wanted.at_once):
                chosen = {each: stored[each] for each in missing[first : first + wanted.at_once]}
                print(f"{key}: {' '.join(chosen)}", flush=True)
                origins = {each: _origin(each) for each in chosen}
                longest = LONGEST_TURN * max(1, wanted.scale)
                run_in_turn(chosen, folder, budget, wanted.rounds, store, wanted.workers, longest)
                _note_origins(chosen, origins)
            figures = {each: json.loads(path.read_text("utf-8")) for each, path in stored.items() if path.exists()}
            failed += [f"failed: see {stored[each].with_suffix('.log')}" for each in systems if each not in figures]
            _store(summary, key, figures)
    recorded = json.loads(summary.read_text("utf-8"))
    if wanted.record:
        page.write(recorded)
    else:
        tables = summary.with_suffix(".md")
        tables.write_text("\n".join(page.parts_of(page.OWN_PARTS, recorded).values()), "utf-8")
        print(f"figures: {tables}")
    print("\n".join(failed))
    sys.exit(bool(failed))


def _is_current(path: Path, made: float, code: str) -> bool:
    """Whether a result is newer than its workload, and of the same code."""
    is_newer = path.exists() and path.stat().st_mtime > made
    return is_newer and json.loads(path.read_text("utf-8")).get("code") == code


def _origin(system: str) -> dict[str, str]:
    """What a result of now is of."""
    git = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    described = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    day = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    return {"measured": day, "commit": described.stdout.strip(), "code": code_of(system)}


def _note_origins(results: Mapping[str, Path], origins: Mapping[str, Mapping[str, str]]) -> None:
    """Adds to results what they are of."""
    for system, path in results.items():
        if path.exists():
            path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | dict(origins[system])), "utf-8")


def _store(path: Path, key: str, figures: dict[str, dict[str, object]]) -> None:
    """Puts the summaries of systems into the file of results; those of other systems stay."""
    stored = json.loads(path.read_text("utf-8")) if path.exists() else {}
    stored.setdefault(key, {})
    stored[key] |= {name: summary_of(result) for name, result in figures.items()}
    path.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
