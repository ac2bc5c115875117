"""A line for each run of the service, for the operator who reads its output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from catalog.counted_nouns import counted
from catalog.quantities import duration_text, size_text
from procedures.service.ended_run import EndedRun
from procedures.service.service_metrics import COMPLETED, CONFLICT, FAILED, LEASE_HELD

_QUIET_OUTCOMES = {
    COMPLETED: "nothing to do",
    CONFLICT: "nothing rewritten, because a concurrent write had priority",
    LEASE_HELD: "another run holds the lease of the table",
}


def run_text(run: EndedRun) -> str:
    """Returns what a run has done, without its time and its table.

    Args:
        run: the run.
    """
    totals, parts = run.totals, []
    if totals.reasons:
        before = f"{counted(totals.input_files, 'file')} ({size_text(totals.input_bytes)})"
        after = f"{counted(totals.output_files, 'file')} ({size_text(totals.output_bytes)})"
        parts.append(f"{', '.join(totals.reasons)} {before} -> {after}")
        if run.saving is not None:
            parts.append(f"saves reads about {size_text(round(run.saving))} per day")
    if run.maintained:
        parts.append(f"maintenance {', '.join(run.maintained)}")
    if totals.conflicting_groups:
        parts.append(f"{counted(totals.conflicting_groups, 'group')} failed ({', '.join(totals.failures)})")
    if run.refusal:
        parts.append(run.refusal)
    elif run.stop is not None:
        parts.append(f"stopped, {run.stop.code}: {run.stop.message}")
    parts += [f"FAILED {problem}" for problem in run.problems]
    return "; ".join(parts) or _QUIET_OUTCOMES[run.outcome]


class RunLines:
    """Prints a line for each run.

    A run that waits for a lease or for a budget is tried again every few seconds. Its line is printed once, until the
    table has a run with another result.

    Args:
        print_line: prints one line.
    """

    def __init__(self, print_line: Callable[[str], object]) -> None:
        self._print_line = print_line
        self._waiting: dict[str, str] = {}

    def __call__(self, run: EndedRun) -> None:
        """Prints the line of a run.

        Args:
            run: the run.
        """
        is_wait = run.outcome != FAILED and not run.totals.reasons and bool(run.totals.lease_held or run.refusal)
        reason = run.refusal.partition(":")[0] if run.refusal else run.outcome
        if is_wait and self._waiting.get(run.table) == reason:
            return
        if is_wait:
            self._waiting[run.table] = reason
        else:
            self._waiting.pop(run.table, None)
        # In the time zone of this process, as every time that a command prints.
        started = datetime.fromtimestamp(run.started_at / 1000)  # noqa: DTZ006
        line = f"{started.isoformat(' ', 'seconds')} {run.table}: {run_text(run)} in {duration_text(run.duration_ms)}"
        self._print_line(line)
