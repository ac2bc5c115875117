"""How long the writer of a table pauses between two statements, from what their commits say; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

# So many pauses tell how long the next one will be.
_LAST = 5
# So many tell whether there are pauses at all.
_MANY = 20
# Delta and delta-rs write it differently.
_DURATIONS = ("executionTimeMs", "execution_time_ms")


@dataclass(frozen=True)
class Span:
    """When a statement began and committed, by the clock of its writer, in epoch milliseconds."""

    begun: int
    ended: int

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Span | None:
        """Reads it from ``commitInfo``; None if the writer does not say how long the statement took."""
        metrics = info.get("operationMetrics") or {}
        try:
            ended = int(info["timestamp"])
            duration = next(int(metrics[name]) for name in _DURATIONS if name in metrics)
        except (KeyError, StopIteration, TypeError, ValueError):
            return None
        return cls(ended - duration, ended)


def next_pause(spans: Sequence[Span | None]) -> int | None:
    """Returns how long after the last statement the next one begins at the earliest, in milliseconds.

    It is the shortest of the last pauses. For a writer with a fixed rate, it is less than that after a slow statement.

    Args:
        spans: of statements, in the order of their commits. They overlap if there are several writers.

    Returns:
        Less than 0 if the next statement is expected to have begun. None if nobody knows.
    """
    known = _known(spans[-_LAST - 1 :])
    if known is None:
        return None
    last = known[-1]
    shortest = min(after.begun - before.ended for before, after in pairwise(known))
    interval = min(after.begun - before.begun for before, after in pairwise(known))
    return min(shortest, last.begun + interval - last.ended)


def longest_pause(spans: Sequence[Span | None]) -> int | None:
    """Returns the longest pause between the last statements, in milliseconds; None if nobody knows.

    Args:
        spans: see ``next_pause``.
    """
    known = _known(spans[-_MANY - 1 :])
    return None if known is None else max(after.begun - before.ended for before, after in pairwise(known))


def _known(spans: Sequence[Span | None]) -> list[Span] | None:
    """The spans, if there are two at least and all are known."""
    known = [span for span in spans if span is not None]
    return known if len(known) == len(spans) > 1 else None
