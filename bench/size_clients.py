"""Many JDBC clients of one server at once: failures, answer times, and the memory of the server.

Each client has a connection and sends one statement after another without a pause: filters, samples, an aggregate,
``CALL use.status`` and ``<table>.optimizations``. The queries must give the same rows each time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from process_tree import tree
from server_process import Server
from sql_clients import PROGRAMS, SPARK_HOME, PyHiveClient

ROWS = 500_000
SAMPLE_SECONDS = 20
TABLE = "events"
CREATE = f"""CREATE TABLE {TABLE} USING delta
TBLPROPERTIES ('use.index.columns' = 'x,y', 'use.index.targetFileBytes' = '1MB')
AS SELECT id, rand(1) AS x, rand(2) AS y, concat('note ', id % 1000) AS note FROM range({ROWS})"""
# A name with "=" has the same rows each time.
STATEMENTS = {
    "=box": f"SELECT count(*), sum(id) FROM {TABLE} WHERE x BETWEEN 0.2 AND 0.25 AND y BETWEEN 0.4 AND 0.5",
    "=point": f"SELECT count(*), min(note) FROM {TABLE} WHERE x BETWEEN 0.5 AND 0.501",
    "=sample": f"SELECT count(*), sum(id) FROM {TABLE} TABLESAMPLE (1 PERCENT)",
    "=groups": f"SELECT count(*) FROM (SELECT note, avg(y) FROM {TABLE} WHERE x < 0.1 GROUP BY note)",
    "status": f"CALL use.status('{TABLE}')",
    "optimizations": f"SELECT * FROM {TABLE}.optimizations",
}
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
# Collectors divide the heap in different ways.
_USED = re.compile(r"(?:heap|generation)\s+total \d+K, used (\d+)K")


@dataclass(frozen=True)
class Memory:
    """Megabytes of the server.

    Attributes:
        heap: in use in the JVM, without garbage.
        jvm: of the process of the JVM.
        python: of the process of Python.
    """

    heap: int
    jvm: int
    python: int


class MemoryWatch(threading.Thread):
    """Measures the memory of a server again and again, until it is stopped."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._python = server.process.pid
        self._jvm = next(pid for pid in tree(self._python) if _command(pid).endswith("java"))
        self._end = threading.Event()
        self.samples: list[Memory] = []

    def run(self) -> None:
        """Measures."""
        while not self._end.wait(SAMPLE_SECONDS):
            self.samples.append(self.memory())

    def stop(self) -> None:
        """Ends the measurement."""
        self._end.set()
        self.join()

    def memory(self) -> Memory:
        """The memory now."""
        ask = ("jcmd", str(self._jvm))
        subprocess.run([*ask, "GC.run"], capture_output=True, check=True)
        found = subprocess.run([*ask, "GC.heap_info"], capture_output=True, check=True, text=True)
        used = sum(int(size) for size in _USED.findall(found.stdout))
        return Memory(used // 1000, _resident(self._jvm), _resident(self._python))


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


def client_figures(home: Path, clients: int, minutes: float) -> dict[str, Any]:
    """Starts a server, lets the clients work, and returns the figures."""
    server = Server(home, conf=SETTINGS)
    try:
        server.wait_until_ready()
        with PyHiveClient(server) as first:
            first.run(CREATE)
            first.run(f"CALL use.optimize('{TABLE}')")
        watch = MemoryWatch(server)
        before = watch.memory()
        watch.start()
        started = time.monotonic()
        lines = _clients(server, clients, minutes * 60)
        seconds = time.monotonic() - started
        watch.stop()
        after = watch.memory()
    finally:
        server.stop()
    figures = {"clients": clients, "minutes": round(seconds / 60, 1), **_answers(lines)}
    memory = {"before": asdict(before), "middle": asdict(_middle(watch.samples, before)), "after": asdict(after)}
    figures["memory"] = memory
    for name, value in figures.items():
        print(f"  {name}: {value}", flush=True)
    return figures


def _middle(samples: Sequence[Memory], before: Memory) -> Memory:
    return samples[len(samples) // 2] if samples else before


def _clients(server: Server, clients: int, seconds: float) -> list[str]:
    """The lines of the clients, which are threads of one JVM; see ``JdbcLoad.java``."""
    environment = {
        **os.environ,
        "URL": f"jdbc:hive2://127.0.0.1:{server.jdbc_port}/default",
        "TOKEN": server.token,
    }
    command = ["java", "-Xmx512m", "-cp", str(SPARK_HOME / "jars" / "*"), str(PROGRAMS / "JdbcLoad.java")]
    statements = "".join(f"{name}\t{' '.join(sql.split())}\n" for name, sql in STATEMENTS.items())
    done = subprocess.run(
        [*command, str(clients), str(seconds)],
        input=statements,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if line.count("\t") == 2]


def _answers(lines: Sequence[str]) -> dict[str, Any]:
    parts = [line.split("\t") for line in lines]
    problems = [f"{name}: {problem}" for name, _, problem in parts if problem]
    kinds: dict[str, list[int]] = {"all": []}
    for name, millis, problem in parts:
        if not problem:
            for kind in ("all", name.lstrip("=")):
                kinds.setdefault(kind, []).append(int(millis))
    return {
        "statements": len(parts),
        "failures": len(problems),
        "first failures": problems[:5],
        "answers": {name: _seconds(times) for name, times in sorted(kinds.items()) if times},
    }


def _seconds(millis: Sequence[int]) -> dict[str, float]:
    median, late = np.percentile(millis, (50, 99)) / 1000
    return {"count": len(millis), "median": round(float(median), 2), "p99": round(float(late), 2)}
