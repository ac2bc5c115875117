"""Runs: what is optimizing right now in this process, and the way to stop it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.errors import UnknownNameError
from catalog.table.managed_table import ManagedTable

CALL, MANUAL, AUTOMATIC, CLI = "call", "manual", "automatic", "cli"
CANCELLED = "CANCELLED"
"""The reason of a run that somebody has asked to stop."""


@dataclass(frozen=True)
class Stop:
    """Why a run ends before all work is done.

    Attributes:
        code: reason code, such as ``CANCELLED``.
        message: the same for people.
    """

    code: str
    message: str


@dataclass
class Run:
    """One optimization of a table, from its first plan to its last group.

    Attributes:
        table: full name.
        location: the table's root.
        trigger: who asked: ``call``, ``manual``, ``automatic`` or ``cli``.
        parameters: what was asked for, as text.
        started_at: epoch milliseconds.
        run_id: names it in ``use.status`` and ``use.cancel``.
        current: what it does right now, for people.
        committed: groups committed so far.
        committed_bytes: input bytes of these groups.
        on_stop: called when it is first asked to stop, perhaps in a signal handler.
        part_of: the run that this one is a part of: a request to stop it stops this one, too.
    """

    table: str
    location: str
    trigger: str
    parameters: Mapping[str, str]
    started_at: int
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    current: str = "planning"
    committed: int = 0
    committed_bytes: int = 0
    on_stop: Callable[[], None] | None = field(default=None, repr=False)
    part_of: Run | None = field(default=None, repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _reason: Stop | None = None

    @classmethod
    def of(
        cls,
        table: ManagedTable,
        trigger: str,
        parameters: Mapping[str, str],
        clock: Clock = SYSTEM_CLOCK,
        part_of: Run | None = None,
    ) -> Run:
        """A new run that begins now."""
        return cls(table.name, table.location, trigger, parameters, clock.now(), part_of=part_of)

    def request_stop(self, code: str, message: str) -> None:
        """Asks it to stop at the next boundary between groups; the first reason given stays.

        Args:
            code: reason code of the last row of its report, such as ``CANCELLED``.
            message: the same for people.
        """
        is_first = self._reason is None
        if is_first:
            self._reason = Stop(code, message)
        self._stop.set()
        if is_first and self.on_stop is not None:
            self.on_stop()

    def interrupt(self) -> Stop:
        """Asks it to stop because its caller was interrupted; returns the first reason to stop that was given."""
        self.request_stop("INTERRUPTED", "interrupted")
        return self._reason or Stop("INTERRUPTED", "interrupted")

    @property
    def stop_reason(self) -> Stop | None:
        """The request to stop; None while there is none."""
        if self._stop.is_set():
            return self._reason
        return None if self.part_of is None else self.part_of.stop_reason


class Runs:
    """The runs of this process, by id."""

    def __init__(self) -> None:
        """Starts empty."""
        self._lock = threading.Lock()
        self._live: dict[str, Run] = {}
        self._on_stop: Callable[[], None] | None = None

    @contextmanager
    def announcing_stops(self, on_stop: Callable[[], None]) -> Iterator[None]:
        """Calls a function when a run that begins within the block is first asked to stop.

        Args:
            on_stop: see ``Run.on_stop``.
        """
        self._on_stop = on_stop
        try:
            yield
        finally:
            self._on_stop = None

    def begin(self, run: Run) -> Run:
        """Lists a run as live."""
        with self._lock:
            run.on_stop = run.on_stop or self._on_stop
            self._live[run.run_id] = run
        return run

    def end(self, run: Run) -> None:
        """Takes a run off the list."""
        with self._lock:
            self._live.pop(run.run_id, None)

    def live(self, where: Callable[[Run], bool] = lambda _: True) -> list[Run]:
        """The live runs, oldest first."""
        with self._lock:
            return sorted((r for r in self._live.values() if where(r)), key=lambda r: (r.started_at, r.run_id))

    def cancel(self, run_id: str) -> Run:
        """Asks a run to stop at the next boundary between groups.

        Raises:
            UnknownNameError: no live run has this id.
        """
        with self._lock:
            run = self._live.get(run_id)
            known = list(self._live)
        if run is None:
            raise UnknownNameError.of("run", run_id, known)
        run.request_stop(CANCELLED, f"run {run_id} was cancelled")
        return run
