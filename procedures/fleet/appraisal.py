"""Appraises a table: what its next rewrites are worth, by a plan, recorded reads, and what became of earlier runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from catalog.clock import Clock
from catalog.files.arrays import UNKNOWN
from catalog.insights.recorded_scans import scan_totals
from catalog.jvm.session import described_jobs
from catalog.properties.insight_properties import records_scans
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.table.managed_table import ManagedTable
from procedures.declare.runs import Run
from procedures.fleet.offer import Offer, saved_per_scan
from procedures.fleet.outcome_files import TurnRecord, store_turns, turns_of
from procedures.fleet.outcomes import Outcome, correction
from procedures.fleet.reads import HALF_LIFE_DAYS, ReadRate, RecordedUse, recent_days
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.table_optimizer import planner_of

_MILLIS_PER_DAY = 86_400_000
# Reads of so many days count.
READ_DAYS = 30
# A turn of a table has so many groups and bytes at most; then tables are ranked again.
MOST_GROUPS = 64
MOST_BYTES = 10 * 1024**3


@dataclass(frozen=True)
class Appraisal:
    """What a table offers.

    Attributes:
        version: version of the table that was looked at.
        offer: the worth and the cost of its next groups; None if there is nothing to rewrite.
        first_bytes: bytes of the first group.
        saved_share: share of the table's bytes that a scan will not read afterwards, as predicted.
        share_read: share of them that a scan reads today.
        is_settled: without an offer, whether nothing will be to do until the table changes.
    """

    version: int
    offer: Offer | None
    first_bytes: int = 0
    saved_share: float = 0.0
    share_read: float = 0.0
    is_settled: bool = True


def appraise(
    table: ManagedTable, settings: OptimizeSettings, run: Run, clock: Clock, *, stores: bool = True
) -> Appraisal:
    """Plans the next turn of a table and judges it; rewrites nothing.

    Args:
        table: the table.
        settings: what its runs do.
        run: names the plan.
        clock: the time.
        stores: whether what recorded reads say about the newest turn is stored below the table.

    Raises:
        UseError: the table cannot be planned.
    """
    plan = planner_of(table, settings, run, clock).plan(PlanRequest(MOST_GROUPS, MOST_BYTES))
    if not plan.groups:
        # Files that are left alone for now become work without a new version.
        return Appraisal(plan.version, None, is_settled=plan.arrived is None and plan.changed is None)
    snapshot = table.snapshot()
    target_bytes = TARGET_FILE_BYTES.value(snapshot.settings)
    table_bytes = max(1, snapshot.bytes)
    use, factor, is_read = None, 1.0, True
    if records_scans(snapshot.settings):
        with described_jobs(table.spark, f"USE fleet: reads of {table.name}"):
            rows = snapshot.file_table.rows
            row_bytes = table_bytes / max(1, int(rows.sum())) if bool((rows != UNKNOWN).all()) else math.inf
            known = turns_of(table)
            record, is_read = _judged(table, known, clock.now(), row_bytes)
            if stores and record != known:
                store_turns(table, record)
            use, factor = _recorded_use(table, record, clock.now(), row_bytes), correction(record.outcomes)
            # A budget is not spent on tables that nobody has read, as far as anybody knows.
            is_read = is_read and use.scans > 0
    rate = ReadRate.of(use)
    return Appraisal(
        plan.version,
        Offer.of(plan.groups, rate, table_bytes, target_bytes, factor, is_read),
        plan.groups[0].bytes,
        saved_per_scan(plan.groups, rate.share_read, table_bytes, target_bytes) / table_bytes,
        rate.share_read,
    )


def record_outcome(table: ManagedTable, appraisal: Appraisal, rewritten: int, now: int) -> None:
    """Keeps what was predicted of a turn that has ended, so that later reads can be compared with it.

    Args:
        table: the table.
        appraisal: by which the table was ranked.
        rewritten: bytes that the turn rewrote; 0 = there is nothing to keep.
        now: epoch milliseconds.
    """
    offer = appraisal.offer
    if offer is None or offer.is_asked or rewritten <= 0:
        return
    done = min(1.0, rewritten / max(offer.cost, 1))
    predicted, saving = appraisal.saved_share * done, offer.saving * done
    outcome = Outcome(now, rewritten, predicted, appraisal.share_read, saving)
    record = turns_of(table)
    store_turns(table, replace(record, outcomes=(*record.outcomes, outcome)))


def _recorded_use(table: ManagedTable, record: TurnRecord, now: int, row_bytes: float) -> RecordedUse:
    totals = scan_totals(table, now - READ_DAYS * _MILLIS_PER_DAY, now, HALF_LIFE_DAYS * _MILLIS_PER_DAY, row_bytes)
    # Reads were recorded before the first of them, as far as somebody has looked.
    since = min(time for time in (totals.first, record.since, now) if time is not None)
    return RecordedUse(totals.weight, recent_days((now - since) / _MILLIS_PER_DAY), totals.share_read)


def _judged(table: ManagedTable, known: TurnRecord, now: int, row_bytes: float) -> tuple[TurnRecord, bool]:
    """What is to be kept of earlier turns, and whether a scan has read the table since the newest.

    The newest outcome is compared with the scans since, once there are enough of them.
    """
    record, is_read = known if known.since is not None else replace(known, since=now), True
    if record.outcomes and record.outcomes[-1].measured is None:
        *earlier, newest = record.outcomes
        totals = scan_totals(table, newest.at, now, math.inf, row_bytes)
        is_read = totals.scans > 0
        record = replace(record, outcomes=(*earlier, newest.judged(totals.scans, totals.share_read)))
    return record, is_read
