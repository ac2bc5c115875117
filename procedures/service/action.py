"""The interface of actions, which the service runs after a change of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.properties.fleet_properties import Pool
from procedures.service.workers import Workers


@dataclass(frozen=True)
class KnownTable:
    """The last known state of a table.

    Attributes:
        name: full name.
        location: its root.
        table_id: Delta's metadata id.
        version: newest version.
        configuration: its properties of USE that are in force.
        own: those that it sets itself.
        columns: names of its columns.
        database: its database; None if it is named by its path.
        pools: the budgets that it shares with other tables.
        modified: when the log file of this version was written, epoch milliseconds; -1 if unknown.
    """

    name: str
    location: str
    table_id: str
    version: int
    configuration: Mapping[str, str]
    own: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    database: str | None = None
    pools: tuple[Pool, ...] = ()
    modified: int = -1


@dataclass(frozen=True)
class TableChange:
    """A change of the table at a location: ``before`` is None for a new table, ``after`` for a dropped one."""

    before: KnownTable | None
    after: KnownTable | None

    @property
    def location(self) -> str:
        """Location of the table."""
        table = self.after or self.before
        return "" if table is None else table.location

    @property
    def is_another(self) -> bool:
        """Whether another table has replaced it."""
        return self.before is not None and self.after is not None and self.before.table_id != self.after.table_id

    @property
    def properties_changed(self) -> bool:
        """Whether its properties of USE differ, or there were none before."""
        before = None if self.before is None or self.is_another else self.before.configuration
        return before != (None if self.after is None else self.after.configuration)


class Action(ABC):
    """An operation of the service after a change of a table."""

    @classmethod
    @abstractmethod
    def due(cls, change: TableChange) -> Action | None:
        """Returns the action for a change; None if this kind of action does not apply."""

    @abstractmethod
    def apply(self, workers: Workers) -> None:
        """Runs the action; must be quick, because the loop waits."""
