"""StartOptimization: automatic optimization of a table was turned on or changed."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.properties.optimization_properties import effective_type
from procedures.service.action import Action, KnownTable, TableChange
from procedures.service.schedule import InvalidSchedule, NoSchedule, Schedule, schedule_of
from procedures.service.workers import Workers


@dataclass(frozen=True)
class StartOptimization(Action):
    """Starts the worker of a table, or replaces its schedule.

    Attributes:
        table: the table.
        schedule: the new schedule, or the error of the properties, which becomes the state of the table.
    """

    table: KnownTable
    schedule: Schedule | InvalidSchedule

    @classmethod
    def due(cls, change: TableChange) -> StartOptimization | None:
        """See ``Action.due``."""
        after = change.after
        if after is None or not change.properties_changed:
            return None
        schedule = schedule_of(after.configuration)
        if isinstance(schedule, NoSchedule):
            return None
        before = None if change.before is None or change.is_another else schedule_of(change.before.configuration)
        # Other properties, such as the index columns, do not affect the schedule.
        return None if isinstance(schedule, Schedule) and schedule == before else cls(after, schedule)

    def apply(self, workers: Workers) -> None:
        """See ``Action.apply``."""
        if isinstance(self.schedule, InvalidSchedule):
            strategies = effective_type(self.table.configuration) or ""
            workers.refuse(self.table.name, self.table.location, strategies, self.schedule.error)
        else:
            workers.start(self.table.name, self.table.location, self.schedule, self.table.version)
