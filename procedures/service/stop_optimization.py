"""StopOptimization: automatic optimization of a table was turned off, or the table was dropped."""

from __future__ import annotations

from dataclasses import dataclass

from procedures.service.action import Action, TableChange
from procedures.service.schedule import NoSchedule, schedule_of
from procedures.service.workers import Workers


@dataclass(frozen=True)
class StopOptimization(Action):
    """Ends the worker of a table; its current run stops at the next boundary between groups.

    Attributes:
        location: location of the table.
        code: reason code for the last row of the run's report.
        why: the reason as text.
    """

    location: str
    code: str
    why: str

    @classmethod
    def due(cls, change: TableChange) -> StopOptimization | None:
        """See ``Action.due``."""
        before, after = change.before, change.after
        if before is None or isinstance(schedule_of(before.configuration), NoSchedule):
            return None
        if after is None:
            return cls(change.location, "TABLE_GONE", "the table was dropped or moved")
        if change.is_another:
            return cls(change.location, "TABLE_GONE", "another table has replaced it")
        if change.properties_changed and isinstance(schedule_of(after.configuration), NoSchedule):
            return cls(change.location, "PROPERTIES_UNSET", "automatic optimization of the table was turned off")
        return None

    def apply(self, workers: Workers) -> None:
        """See ``Action.apply``."""
        workers.stop(self.location, self.code, self.why)
