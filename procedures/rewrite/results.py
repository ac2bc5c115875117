"""The context of a rewrite, what it writes, and what it has committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.history.events import FileFacts, OptimizationEvent
from procedures.layout.step import StepObserver, ignore_step


@dataclass(frozen=True)
class RewriteContext:
    """What a rewrite needs besides its group.

    Attributes:
        trigger: who asked: ``call`` for SQL and Python.
        parameters: arguments of the call, for the event.
        observe: sees each step before it begins.
        clock: the time.
        hold: what a commit waits for between its checks for conflicts, see ``TableTransaction.hold``; None for nothing.
    """

    trigger: str = "call"
    parameters: Mapping[str, str] = field(default_factory=dict)
    observe: StepObserver = ignore_step
    clock: Clock = SYSTEM_CLOCK
    hold: Callable[[int], int] | None = None


@dataclass(frozen=True)
class RewriteOutput:
    """The files that a rewrite has written and not yet committed.

    Attributes:
        revision_id: their revision; 0 when they are unindexed, -1 when there are none.
        facts: as the event tells of them.
        tags: by path.
        warning: what the owner should know about the data, None when nothing.
    """

    revision_id: int
    facts: tuple[FileFacts, ...]
    tags: Mapping[str, Mapping[str, str]]
    warning: str | None = None


@dataclass(frozen=True)
class RewriteResult:
    """A committed rewrite.

    Attributes:
        version: version of the commit.
        output_files: files written.
        output_bytes: their bytes.
        rows: rows in them.
        new_revision: number of the revision that was made for the rows, None when they fitted an existing one.
        event: what the commit tells of it.
        paths: the files written, as in the log.
        warning: what the owner should know about the data, None when nothing.
    """

    version: int
    output_files: int
    output_bytes: int
    rows: int
    new_revision: int | None
    event: OptimizationEvent
    paths: tuple[str, ...]
    warning: str | None = None
