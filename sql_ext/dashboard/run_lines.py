"""The runs under way, in this process and in others; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.epoch_millis import moment
from catalog.state.fleet_ledger import LedgerState, OpenRun
from procedures.declare.runs import AUTOMATIC, Run
from procedures.service.fleet_overview import Member


@dataclass(frozen=True)
class RunLine:
    """A run under way.

    Attributes:
        table: full name of the table.
        trigger: what started it; None if only its holder is known.
        step: what it does now, for people; None if it runs in another process.
        groups: groups that it has committed; None likewise.
        bytes: their input bytes; None likewise.
        of_bytes: bytes that it is expected to rewrite; None if nobody has planned it.
        started_at: when it started; None if that is not known.
        holder: host and process; None for this process.
    """

    table: str
    trigger: str | None
    step: str | None
    groups: int | None
    bytes: int | None
    of_bytes: int | None
    started_at: datetime | None
    holder: str | None = None

    @property
    def share(self) -> float | None:
        """Share of the expected bytes that it has rewritten; None if nobody knows."""
        if self.bytes is None or not self.of_bytes:
            return None
        return min(1.0, self.bytes / self.of_bytes)


def run_lines(
    runs: Sequence[tuple[str, Run]],
    members: Sequence[Member],
    ledger: LedgerState,
    offered: Mapping[str, int],
    now: int,
) -> list[RunLine]:
    """Returns the runs under way: those of this process, then those of others by their leases and the ledger.

    Args:
        runs: the live runs of this process, and the location of each in its one spelling.
        members: the members of the fleet.
        ledger: has the runs that count for budgets.
        offered: bytes that tables have offered last, by location.
        now: epoch milliseconds.
    """
    here = [
        RunLine(
            run.table,
            run.trigger,
            run.current,
            run.committed,
            run.committed_bytes,
            offered.get(location) if run.trigger == AUTOMATIC else None,
            moment(run.started_at),
        )
        for location, run in runs
    ]
    known = {run.run_id for _, run in runs}
    others: dict[str, RunLine] = {}
    for member in members:
        lease = member.lease
        if lease is not None and lease.expires_at > now and lease.run_id not in known:
            begun = moment(lease.acquired_at)
            others[lease.run_id] = RunLine(
                member.table.name, lease.trigger, None, None, None, None, begun, lease.holder
            )
    for run in ledger.runs:
        if run.expires_at > now and run.run_id not in known:
            others.setdefault(run.run_id, _of_ledger(run))
    return [*here, *others.values()]


def _of_ledger(run: OpenRun) -> RunLine:
    return RunLine(run.table, None, None, None, None, None, None, run.holder)
