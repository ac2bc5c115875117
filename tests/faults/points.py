"""The named points of an operation in a real session, and the faults that strike there.

A point is a step of a rewrite, or a call at the border between Python and the JVM: one that reads or writes the log,
data files or a state file. Its name says what the call is for, as the phases of the simulated histories do.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from simulation.surroundings.paths import phase_of

from catalog.jvm.file_writer import FileWriter
from catalog.jvm.indexed_rows import LaidOutRows
from catalog.jvm.shared_texts import SharedTexts
from catalog.jvm.table_handle import TableHandle
from catalog.jvm.table_state import TableState
from catalog.jvm.table_transaction import TableTransaction
from catalog.jvm.table_vacuum import TableVacuum
from catalog.jvm.table_versions import TableVersions
from procedures.layout.step import Step, StepObserver
from procedures.loop import table_optimizer
from procedures.rewrite.results import RewriteContext

ERROR, LOST_ANSWER, DELAY = "error", "lost answer", "delay"
VANISHED, DENIED = "folder vanishes", "right is lost"
# By class: the methods, each with the name of its point. None = the phase of the file that the first argument names.
_WRITING: dict[type, dict[str, str | None]] = {
    TableHandle: {"write_text": None, "create_text": None, "delete": None, "probe_write": "check of rights"},
    TableTransaction: {
        "write_deleted": "write change feed",
        "commit": "commit",
        "commit_properties": "commit properties",
        "replace_entries": "commit entries",
        "discard": "discard files",
    },
    FileWriter: {"write": "write rows"},
    LaidOutRows: {"tag": "tag files"},
    TableVersions: {"checkpoint": "checkpoint", "delete_log_before": "delete log"},
    TableVacuum: {
        "delete_all": "delete files",
        "delete": "delete files",
        "started": "record vacuum",
        "ended": "record vacuum",
        "failed": "record vacuum",
        "cover": "note coverage",
    },
    SharedTexts: {"create": "ledger", "delete": "ledger"},
}
_READING: dict[type, dict[str, str | None]] = {
    TableHandle: {
        "state": "snapshot",
        "begin": "begin transaction",
        "read_text": None,
        "list_names_containing": None,
        "versions": "versions",
        "vacuum": "begin vacuum",
    },
    TableState: {"facts": "snapshot"},
    TableTransaction: {
        "replace_files": "take files",
        "depend_on": "take files",
        "read": "read rows",
        "scan": "read rows",
    },
    FileWriter: {"configure": "configure", "read_written": "read written rows"},
    TableVersions: {
        "oldest": "versions",
        "newest": "versions",
        "at": "versions",
        "checkpoint_before": "versions",
        "log_before": "list log",
        "changes": "read commits",
        "load": "load log",
        "files": "read commits",
        "existing": "look at files",
        "needed": "needed files",
    },
    TableVacuum: {
        "listing": "list files",
        "candidates": "candidates",
        "deletable": "look at files",
        "tombstones": "read removals",
        "removals": "read removals",
    },
    SharedTexts: {"read": "ledger", "names": "ledger"},
}
_VERBS = {"write_text": "write", "create_text": "write", "delete": "delete", "read_text": "read"}


def is_writing(point: str) -> bool:
    """Whether a call at a point changes something, so that its answer can be lost."""
    names = {name for methods in _WRITING.values() for name in methods.values()}
    return point in names or point.startswith(("write ", "delete ", "create ledger"))


class Points:
    """Counts the points that an operation reaches, and lets one fault strike.

    Args:
        spark: the session.
        notes: gets a line for each point reached; None for no file.
    """

    def __init__(self, spark: SparkSession, notes: Path | None = None) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._notes = None if notes is None else os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._local = threading.local()
        self._watching = False
        self._fault: tuple[str, int, str] | None = None
        self._act: Callable[[], object] = lambda: None
        self.reached: Counter[str] = Counter()
        self.has_struck = False
        _place(self)

    @contextmanager
    def watched(
        self, fault: tuple[str, int, str] | None = None, act: Callable[[], object] = lambda: None
    ) -> Iterator[None]:
        """Counts points while the block runs.

        Args:
            fault: name of a point, which of its calls, and the kind of the fault.
            act: what happens at the point before the call, of the other kinds than errors.
        """
        self.reached, self.has_struck, self._fault, self._act = Counter(), False, fault, act
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def note(self, text: str) -> None:
        """Adds a line to the notes, which outlives the process at once."""
        if self._notes is not None:
            os.write(self._notes, f"{text}\n".encode())

    def call(self, point: str, real: Callable[[], Any]) -> Any:
        """Makes a call, or lets the fault strike in its place or after it."""
        if not self._watching or getattr(self._local, "acts", False):
            return real()
        self.note(f"at {self._spark.sparkContext.getLocalProperty(CASE) if self._notes is not None else ''} {point}")
        kind = self._strike(point)
        if kind == ERROR:
            self._refuse()
        elif kind not in (None, LOST_ANSWER):
            self._local.acts = True
            try:
                self._act()
            finally:
                self._local.acts = False
        result = real()
        if kind == LOST_ANSWER:
            self._refuse()
        return result

    def _strike(self, point: str) -> str | None:
        with self._lock:
            self.reached[point] += 1
            if self._fault is None or self.has_struck or self._fault[:2] != (point, self.reached[point]):
                return None
            self.has_struck = True
            return self._fault[2]

    def _refuse(self) -> None:
        """Raises an error of the JVM, as a store does that nobody can reach."""
        assert self._spark._jvm is not None
        self._spark._jvm.java.net.Socket("127.0.0.1", 1)
        raise AssertionError("port 1 of this machine answers")


CASE = "use.faults.case"
"""Local property of Spark: the number of the case that a thread works on."""


def _place(points: Points) -> None:
    """Puts the points around the methods; a process has one set of them."""
    for methods in (_WRITING, _READING):
        for owner, names in methods.items():
            for method, point in names.items():
                setattr(owner, method, _around(points, owner.__dict__[method], method, point))

    def context(trigger: str, parameters: Any, observe: StepObserver, clock: Any) -> RewriteContext:
        def seen(step: Step) -> None:
            points.call(f"step {step.value}", partial(observe, step))

        return RewriteContext(trigger, parameters, seen, clock)

    table_optimizer.RewriteContext = context  # type: ignore[assignment, misc]


def _around(points: Points, real: Callable[..., Any], method: str, point: str | None) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        name = point if point is not None else f"{_VERBS.get(method, 'list')} {_file_kind(method, arguments[0])}"
        if name == "ledger":
            name = f"{method} ledger"
        return points.call(name, partial(real, self, *arguments, **named))

    call.__name__, call.__doc__ = method, real.__doc__
    return call


def _file_kind(method: str, file: str) -> str:
    return phase_of(f"{file}/" if method.startswith("list") else file)
