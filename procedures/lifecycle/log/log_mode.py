"""The interface of the modes of ``CALL use.consolidate_log``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import SparkSession

from catalog.table.managed_table import ManagedTable
from procedures.selection.timestamps import Instant

TIMESTAMP_START, TIMESTAMP_END = "timestamp_start", "timestamp_end"

DONE, PLANNED, SKIPPED, FAILED = "done", "planned", "skipped", "failed"


@dataclass(frozen=True)
class LogTask:
    """One table whose log is consolidated.

    Attributes:
        table: the table.
        session: session of the work.
        start: considers only files and events of this time or later; None for no limit.
        end: considers only files and events of this time or earlier.
        dry_run: plans only.
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
    """

    table: ManagedTable
    session: SparkSession
    start: Instant | None = None
    end: Instant | None = None
    dry_run: bool = False
    trigger: str = "call"

    def outcome(self, message: str, version: int | None = None) -> ModeOutcome:
        """Returns the outcome of work that was done, or would be.

        Args:
            message: the work, as a phrase that fits both.
            version: the version that it committed or wrote a checkpoint of.
        """
        if self.dry_run:
            return ModeOutcome(PLANNED, f"planned: {message}")
        return ModeOutcome(DONE, message, version)


@dataclass(frozen=True)
class ModeOutcome:
    """The outcome of a mode.

    Attributes:
        state: ``done``, ``planned`` or ``skipped``.
        message: one sentence.
        version: the version that it committed or wrote a checkpoint of.
        files: number of files before and after, for a mode whose files are not those of the log.
    """

    state: str
    message: str
    version: int | None = None
    files: tuple[int, int | None] | None = None


class LogMode(ABC):
    """One mode.

    Attributes:
        name: as in ``modes``.
        aliases: other names that ``modes`` accepts, those of TileDB.
        doc: its effect, one sentence.
        times: which of ``timestamp_start`` and ``timestamp_end`` it accepts.
        takes_lease: whether it holds the table's lease, because it changes the same files as optimizations.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    doc: ClassVar[str]
    times: ClassVar[frozenset[str]] = frozenset()
    takes_lease: ClassVar[bool] = False

    @abstractmethod
    def run(self, task: LogTask) -> ModeOutcome:
        """Consolidates, or plans only."""
