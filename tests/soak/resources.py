"""What a process with a session uses: memory, threads, open files, and what lies on the disk."""

import contextlib
import gc
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from process_tree import threads
from pyspark.sql import SparkSession

from soak.flatness import LEAST_SAMPLES, Allowance, Trend, trend

MIB = 1 << 20
# Shorter runs show the numbers only: classes are still loaded, and no old version was deleted yet.
JUDGED_MINUTES = 20

ALLOWANCES = {
    "JVM heap without pages, MiB": Allowance(15),
    "JVM outside the heap, MiB": Allowance(15),
    "JVM resident, MiB": Allowance(60),
    "JVM threads": Allowance(10),
    "JVM open files": Allowance(20),
    "Python blocks, 1,000": Allowance(20),
    "Python resident, MiB": Allowance(25),
    "Python threads": Allowance(4),
    "Python open files": Allowance(8),
    "temporary files": Allowance(20),
    "persisted RDDs": Allowance(2),
    "blocks in memory, MiB": Allowance(8),
    "files of the log": Allowance(60),
    "bytes of the log, KiB": Allowance(400),
    "files of the state": Allowance(40),
    "bytes of the state, KiB": Allowance(200),
    "data files": Allowance(80),
    "bytes of data, KiB": Allowance(2000),
}


def _sizes(folders: Iterable[Path]) -> list[int]:
    found = []
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # it was deleted meanwhile
                    found.append(os.lstat(f"{parent}/{name}").st_size)
    return found


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@dataclass
class Resources:
    """Samples of a session, its table and its temporary files.

    Args:
        spark: the session.
        table: path of the table.
        temporary: folders of temporary files.
    """

    spark: SparkSession
    table: Path
    temporary: tuple[Path, ...]
    samples: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ALLOWANCES})
    folders: Counter[str] = field(default_factory=Counter)

    def sample(self) -> None:
        """Takes a sample of everything."""
        for name, value in self._take().items():
            self.samples[name].append(value)
        # The newest listing shows where files pile up; ids in names of folders are cut off.
        self.folders = Counter(
            re.sub(r"[0-9a-f-]{8,}", "*", os.path.relpath(parent, root.parent))
            for root in (self.table, *self.temporary)
            for parent, _, names in os.walk(root)
            for _ in names
        )

    def trends(self) -> dict[str, Trend]:
        """The trend of each resource; none of them if there are too few samples."""
        if len(next(iter(self.samples.values()))) < LEAST_SAMPLES:
            return {}
        return {name: trend(self.samples[name], allowance) for name, allowance in ALLOWANCES.items()}

    def _take(self) -> dict[str, float]:
        jvm: Any = self.spark._jvm
        # First Python's garbage: each of its handles keeps an object of the JVM alive.
        gc.collect()
        heap = _heap_bytes(self.spark)
        memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        pid, own = jvm.java.lang.ProcessHandle.current().pid(), os.getpid()
        context = self.spark.sparkContext._jsc.sc()
        log, state = _sizes([self.table / "_delta_log"]), _sizes([self.table / "_use"])
        everything = _sizes([self.table])
        values: list[float] = [
            heap / MIB,
            memory.getNonHeapMemoryUsage().getUsed() / MIB,
            _resident(pid),
            threads(pid),
            _open_files(pid),
            # A list of all objects would break tuples that other threads are building.
            sys.getallocatedblocks() / 1000,
            _resident(own),
            threading.active_count(),
            _open_files(own),
            len(_sizes(self.temporary)),
            context.getPersistentRDDs().size(),
            _block_bytes(context) / MIB,
            len(log),
            sum(log) / 1024,
            len(state),
            sum(state) / 1024,
            len(everything) - len(log) - len(state),
            (sum(everything) - sum(log) - sum(state)) / 1024,
        ]
        return dict(zip(ALLOWANCES, values, strict=True))


def _heap_bytes(spark: SparkSession) -> int:
    """Bytes of all objects that are alive, but for arrays of LONG, by the histogram of a full garbage collection.

    Running tasks and broadcasts keep rows in such arrays, of up to 64 MB each, now more of them and now fewer.
    """
    system, process = spark._jvm.java.lang.System, spark._jvm.java.lang.ProcessHandle.current()
    jcmd = Path(system.getProperty("java.home")) / "bin" / "jcmd"
    command = [str(jcmd), str(process.pid()), "GC.class_histogram"]
    return bytes_without_pages(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bytes_without_pages(histogram: str) -> int:
    """Bytes of a histogram of classes without those of arrays of LONG.

    Args:
        histogram: lines with rank, instances, bytes and class, and a last one with the totals.
    """
    lines = [line.split() for line in histogram.splitlines() if line.strip()]
    pages = sum(int(line[2]) for line in lines if line[3:4] == ["[J"])
    (total,) = [int(line[2]) for line in lines if line[0] == "Total"]
    return total - pages


def _block_bytes(context: Any) -> int:
    status = context.getExecutorMemoryStatus().values().iterator()
    used = 0
    while status.hasNext():
        pair = status.next()
        used += pair._1() - pair._2()
    return used


def table_of(trends: dict[str, Trend], hours_per_third: float, is_judged: Callable[[Trend], bool]) -> list[str]:
    """The trends as lines of text, of 100 characters at most.

    Args:
        trends: by the name of the resource.
        hours_per_third: hours between the middles of two thirds.
        is_judged: whether a resource that grows fails the run.
    """
    lines = [f"{'':<28}{'first':>9}{'middle':>9}{'last':>9}{'per hour':>10}{'allowed':>9}"]
    for name, one in trends.items():
        verdict = "GROWS" if is_judged(one) and one.grows else ""
        numbers = f"{one.first:>9,.1f}{one.middle:>9,.1f}{one.last:>9,.1f}{one.slope / hours_per_third:>+10,.1f}"
        lines.append(f"{name:<28}{numbers}{one.allowed:>9,.1f}  {verdict}".rstrip())
    return lines
