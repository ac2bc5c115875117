"""When the strategies and the maintenance of a table last ran, and which of them are due again."""

from __future__ import annotations

from collections.abc import Collection

from catalog.properties.lifecycle_properties import Pace
from procedures.service.schedule import COLUMN_CHOICE, HEALTH_CHECK, INSIGHTS, LOG_CONSOLIDATION, RECLAMATION, Schedule


class LastRuns:
    """For each strategy with a pace and each maintenance: when it last ran, and the newest version then."""

    def __init__(self) -> None:
        self._strategies: dict[str, tuple[int, int]] = {}
        self._maintenance: dict[str, tuple[int, int]] = {}

    def due_strategies(self, schedule: Schedule, now: int, version: int) -> tuple[str, ...]:
        """Returns the strategies that may run: all without a pace, and those whose pace is met.

        Args:
            schedule: of the table.
            now: epoch milliseconds.
            version: newest version of the table.
        """
        paces = {name: schedule.paces.get(name) for name in schedule.strategies}
        return tuple(
            name
            for name, pace in paces.items()
            if pace is None or _is_met(pace, self._strategies.get(name), now, version)
        )

    def due_maintenance(self, schedule: Schedule, now: int, version: int) -> tuple[str, ...]:
        """Returns the maintenance that is due; history ages without new commits. Arguments as above."""
        retention, log, alerts = schedule.retention, schedule.log, schedule.alerts
        paces = {
            INSIGHTS: None if schedule.insights is None else schedule.insights.pace,
            RECLAMATION: None if retention is None else Pace(retention.interval),
            LOG_CONSOLIDATION: None if log is None else log.pace,
            HEALTH_CHECK: None if alerts is None else Pace(alerts.interval),
            COLUMN_CHOICE: None if schedule.column_choice is None else schedule.column_choice.pace,
        }
        return tuple(
            name
            for name, pace in paces.items()
            if pace is not None and _is_met(pace, self._maintenance.get(name), now, version)
        )

    def record_strategies(self, schedule: Schedule, names: Collection[str], started: int, version: int) -> None:
        """Records that strategies have run to the end.

        Args:
            schedule: of the table.
            names: of the strategies.
            started: when they started, epoch milliseconds.
            version: newest version of the table at the end.
        """
        self._strategies |= {name: (started, version) for name in names if name in schedule.paces}

    def record_maintenance(self, names: Collection[str], started: int, version: int) -> None:
        """Records that maintenance has been done; arguments as above."""
        self._maintenance |= dict.fromkeys(names, (started, version))


def _is_met(pace: Pace, last: tuple[int, int] | None, now: int, version: int) -> bool:
    return last is None or pace.is_met(now - last[0], version - last[1])
