"""USE at size: a table of 1,000,000 files, 50 JDBC clients at once, and two workers against one.

    make bench-size                            # all parts: an hour
    make bench-size ARGS="--only workers"      # one part
    make bench-size ARGS="--only table --files 10000"

Each part replaces its own figures in the file of results, so that the parts can be run one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import large_log

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "size.json"
SIZES = (10_000, 100_000, 1_000_000)
PARTS = ("table", "clients", "workers")
# The library alone, which the commands below are built on.
_DELTALAKE = "import sys, deltalake; print(deltalake.DeltaTable(sys.argv[1]).get_add_actions().num_rows)"


def commands(folder: Path) -> dict[str, list[str]]:
    """The commands that read a log without Spark."""
    use = [sys.executable, "-m", "sql_ext"]
    return {
        "deltalake": [sys.executable, "-c", _DELTALAKE, str(folder)],
        "inspect": [*use, "inspect", str(folder)],
        "health": [*use, "health", str(folder)],
        "diagnose": [*use, "diagnose", str(folder)],
    }


def measured(command: list[str]) -> dict[str, float]:
    """Runs a command; elapsed and CPU seconds, and the megabytes that its process held at most."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment())
    assert process.stdout is not None
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    cpu = round(usage.ru_utime + usage.ru_stime, 1)
    return {"seconds": round(time.monotonic() - started, 1), "cpu": cpu, "python": usage.ru_maxrss // 1000}


def session_costs(side: str, folder: Path, home: Path) -> Iterator[dict[str, Any]]:
    """Runs the steps of a session in a process of its own; see ``size_session.Cost``."""
    command = [sys.executable, str(HERE / "size_session.py"), side, str(folder), str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"the session of {side} failed at {folder}")


def table_figures(files: int, home: Path) -> dict[str, Any]:
    """Measures all steps on a table of so many files."""
    folder = home / f"files-{files}"
    started = time.monotonic()
    large_log.write_table(folder, files, with_files=True)
    print(f"{files:,} files, written in {time.monotonic() - started:.0f} s", flush=True)
    figures: dict[str, Any] = {"log": {}}
    for name, command in commands(folder).items():
        figures["log"][name] = measured(command)
        print(f"  {name:24} {figures['log'][name]}", flush=True)
    for side in ("delta", "use"):
        figures[side] = {}
        for cost in session_costs(side, folder, home / side):
            step = cost.pop("step")
            figures[side][step] = cost
            print(f"  {side + ': ' + step:24} {cost}", flush=True)
    shutil.rmtree(folder)
    return figures


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE.parent)}


def store(path: Path, part: str, figures: dict[str, Any]) -> None:
    """Replaces the figures of a part."""
    former = json.loads(path.read_text("utf-8")) if path.exists() else {}
    merged = {**former.get(part, {}), **figures} if part == "table" else figures
    path.write_text(json.dumps({**former, part: merged}, indent=1) + "\n", "utf-8")


def main() -> None:
    """Runs the parts and stores their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--files", type=int, nargs="+", default=SIZES, help="files of the tables")
    parser.add_argument("--minutes", type=float, default=10, help="for the clients")
    parser.add_argument("--clients", type=int, default=50, help="JDBC clients at once")
    parser.add_argument("--rows", type=int, default=24_000_000, help="of the table for the workers")
    parser.add_argument("--rounds", type=int, default=3, help="of the workers")
    parser.add_argument("--json", type=Path, default=RESULTS, help="the file of results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="use-size-") as home:
        if "table" in options.only:
            for files in options.files:
                store(options.json, "table", {str(files): table_figures(files, Path(home))})
        if "clients" in options.only:
            from size_clients import client_figures

            store(options.json, "clients", client_figures(Path(home), options.clients, options.minutes))
        if "workers" in options.only:
            from size_workers import worker_figures

            store(options.json, "workers", worker_figures(Path(home), options.rows, options.rounds))


if __name__ == "__main__":
    main()
