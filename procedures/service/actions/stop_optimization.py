"""StopOptimization: the table's properties ask for no automatic optimization any more, or the table is gone."""

from __future__ import annotations

from dataclasses import dataclass

from procedures.service.actions.action import Action, TableChange
from procedures.service.schedule import NoWish, wish_of
from procedures.service.workers import Workers


@dataclass(frozen=True)
class StopOptimization(Action):
    """Ends the table's worker; a run that is under way ends at the next boundary between groups.

    Attributes:
        location: of the table.
        code: reason code, for the last row of the run's report.
        why: the same for people.
    """

    location: str
    code: str
    why: str

    @classmethod
    def due(cls, change: TableChange) -> StopOptimization | None:
        """See ``Action.due``."""
        before, after = change.before, change.after
        if before is None or isinstance(wish_of(before.configuration), NoWish):
            return None
        if after is None:
            return cls(change.location, "TABLE_GONE", "the table was dropped, or moved")
        if change.is_another:
            return cls(change.location, "TABLE_GONE", "another table has taken its place")
        if change.properties_changed and isinstance(wish_of(after.configuration), NoWish):
            return cls(change.location, "PROPERTIES_UNSET", "the table asks for no automatic optimization any more")
        return None

    def apply(self, workers: Workers) -> None:
        """See ``Action.apply``."""
        workers.stop(self.location, self.code, self.why)
