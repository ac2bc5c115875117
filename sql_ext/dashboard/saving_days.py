"""What reads saved, and what was rewritten, on each of the last days; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from catalog.epoch_millis import moment
from catalog.state.fleet_ledger import LedgerState
from procedures.service.fleet_overview import Member

DAYS = 30
_MILLIS_PER_DAY = 86_400_000


@dataclass(frozen=True)
class DayLine:
    """A day in UTC.

    Attributes:
        day: its beginning.
        saved: bytes that reads have not read because of turns, as measured.
        spent: bytes that were rewritten from budgets.
    """

    day: datetime
    saved: int
    spent: int


def saving_by_day(members: Iterable[Member], ledger: LedgerState, now: int) -> list[DayLine]:
    """Returns what reads have saved on each of the last days, as measured, and what was rewritten; days are of UTC.

    Args:
        members: the members of the fleet.
        ledger: what was spent.
        now: epoch milliseconds.
    """
    outcomes = [outcome for member in members for outcome in member.outcomes if outcome.measured_saving]
    today = now // _MILLIS_PER_DAY * _MILLIS_PER_DAY
    spent: Counter[int] = Counter()
    for spending in ledger.spent:
        spent[spending.at // _MILLIS_PER_DAY * _MILLIS_PER_DAY] += spending.bytes
    days = []
    for start in range(today - (DAYS - 1) * _MILLIS_PER_DAY, today + 1, _MILLIS_PER_DAY):
        end = min(start + _MILLIS_PER_DAY, now)
        saved = sum(outcome.saved_since(start, end) for outcome in outcomes)
        day = moment(max(start, 0))
        if day is not None:
            days.append(DayLine(day, round(saved), spent[start]))
    return days
