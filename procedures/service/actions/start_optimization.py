"""StartOptimization: the table's properties ask for automatic optimization, or for another one than before."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.properties.optimization_properties import effective_type
from procedures.service.actions.action import Action, SeenTable, TableChange
from procedures.service.schedule import NoWish, RefusedWish, Wish, wish_of
from procedures.service.workers import Workers


@dataclass(frozen=True)
class StartOptimization(Action):
    """Gives the table a worker, or its worker a new wish.

    Attributes:
        table: the table.
        wish: what it asks for, or the error of its properties, which is then shown as the table's state.
    """

    table: SeenTable
    wish: Wish | RefusedWish

    @classmethod
    def due(cls, change: TableChange) -> StartOptimization | None:
        """See ``Action.due``."""
        after = change.after
        if after is None or not change.properties_changed:
            return None
        wish = wish_of(after.configuration)
        if isinstance(wish, NoWish):
            return None
        before = None if change.before is None or change.is_another else wish_of(change.before.configuration)
        # Other properties of ours, such as the index columns, do not concern the schedule.
        return None if isinstance(wish, Wish) and wish == before else cls(after, wish)

    def apply(self, workers: Workers) -> None:
        """See ``Action.apply``."""
        if isinstance(self.wish, RefusedWish):
            asked = effective_type(self.table.configuration) or ""
            workers.refuse(self.table.name, self.table.location, asked, self.wish.error)
        else:
            workers.start(self.table.name, self.table.location, self.wish, self.table.version)
