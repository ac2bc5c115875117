"""Tables that are removed and created again at the same place, beside the service.

    make soak-recreations MINUTES=10

delta-rs appends to three tables, removes their folders, and writes new tables with the same paths, some seconds apart.
The service of another process is in the middle of a rewrite again and again. Each table must have the rows that were
appended to it, and a log without a gap. Ends with 0 if that is so, and every append succeeded or lost to a commit of
the service.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake.exceptions import CommitFailedError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from soak.arguments import arguments  # noqa: E402

NAMES = "abc"
START_SECONDS, END_SECONDS, STOP_SECONDS = 15, 20, 60
CREATE_SHARE = 0.25
PROPERTIES = {
    "use.index.columns": "x,id",
    "use.index.cubeSize": "50",
    "use.optimization.autoOptimize.enabled": "true",
    "use.optimization.quietPeriod": "0",
}


class Recreations:
    """The tables, and the rows that each must have."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance, self.next = folder, random.Random(seed), 0
        self.rows: dict[str, set[int]] = {}
        self.counts: Counter[str] = Counter()

    def create(self, name: str) -> None:
        """Writes a table elsewhere, adds the properties, which delta-rs does not write, and moves it to its place."""
        place, made = self.folder / name, self.folder / f"new-{name}"
        rows = self._append(made, 200)
        log = made / "_delta_log" / f"{0:020d}.json"
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        next(action["metaData"] for action in actions if "metaData" in action)["configuration"] = PROPERTIES
        log.write_text(
            "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions), encoding="utf-8"
        )
        while True:
            _remove(place)
            try:
                made.rename(place)
                break
            except OSError:  # the service has written a file in the meantime
                continue
        self.rows[name] = rows
        self.counts["tables"] += 1

    def step(self) -> None:
        """An append, or another table in the place of one."""
        name = self.chance.choice(NAMES)
        if self.chance.random() < CREATE_SHARE:
            self.check(name)
            _remove(self.folder / name)
            self.create(name)
            return
        try:
            self.rows[name] |= self._append(self.folder / name, 60)
            self.counts["appends"] += 1
        except Exception as error:  # noqa: BLE001 - errors are what a soak looks for
            is_conflict = isinstance(error, CommitFailedError) and "changed since last commit" in str(error)
            self._count("appends lost to the service" if is_conflict else "FAILED appends", name, error)
            if not is_conflict:
                self.create(name)

    def check(self, name: str) -> None:
        """Compares the rows, and looks for a gap in the log."""
        folder = self.folder / name / "_delta_log"
        try:
            versions = sorted(int(file.stem) for file in folder.glob("*.json") if file.stem.isdigit())
            found = deltalake.DeltaTable(self.folder / name).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        except Exception as error:  # noqa: BLE001
            self._count("UNREADABLE tables", name, error)
            return
        if versions != list(range(len(versions))):
            self._count("GAPS in logs", name, versions)
        if Counter(found) != Counter(self.rows[name]):
            self._count("WRONG rows", name, f"{len(found)} in place of {len(self.rows[name])}")
        for version in versions:
            self.counts["commits of the service"] += '"USE ' in (folder / f"{version:020d}.json").read_text("utf-8")

    def _append(self, place: Path, most: int) -> set[int]:
        rows = range(self.next, self.next + self.chance.randint(1, most))
        self.next = rows.stop
        values = {"id": list(rows), "x": [row * 2654435761 % 1000003 for row in rows]}
        deltalake.write_deltalake(place, pa.table(values), mode="append")
        return set(rows)

    def _count(self, what: str, name: str, problem: object) -> None:
        self.counts[what] += 1
        if what[0].isupper():
            print(f"{what}: {name}: {str(problem)[:500]}", flush=True)


def _remove(folder: Path) -> None:
    """Removes a folder in which the service may write a file meanwhile."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def _service(folder: Path) -> subprocess.Popen[bytes]:
    program = "import sys; from sql_ext.commands.command_line import main; sys.exit(main())"
    tables = [argument for name in NAMES for argument in ("--table", str(folder / name))]
    often = ["--interval", "1 seconds", "--listener-interval", "300", "--max-tables", "2"]
    with (folder / "service.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", program, "service", *often, *tables],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )


def run(folder: Path, minutes: float, seed: int) -> Recreations:
    """Runs everything for some minutes."""
    tables = Recreations(folder, seed)
    for name in NAMES:
        tables.create(name)
    service = _service(folder)
    try:
        time.sleep(START_SECONDS)
        end = time.monotonic() + minutes * 60
        while time.monotonic() < end:
            assert service.poll() is None, (folder / "service.log").read_text(errors="replace")[-2000:]
            tables.step()
            time.sleep(tables.chance.uniform(0, 0.4))
        time.sleep(END_SECONDS)
        for name in NAMES:
            tables.check(name)
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(STOP_SECONDS)
    return tables


def main() -> int:
    wanted = arguments(__doc__, minutes=10)
    with tempfile.TemporaryDirectory(prefix="use-soak-") as folder:
        tables = run(Path(folder), wanted.minutes, wanted.seed)
    print(", ".join(f"{name} {count:,}" for name, count in sorted(tables.counts.items())))
    failures = sum(count for name, count in tables.counts.items() if name[0].isupper())
    print(f"{failures} failures" if failures else "every table was right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
