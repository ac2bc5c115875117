"""What an action is: the one way from a change of a table to something that the service does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from procedures.service.workers import Workers


@dataclass(frozen=True)
class SeenTable:
    """A table as it was last seen.

    Attributes:
        name: full name.
        location: its root.
        table_id: Delta's metadata id.
        version: newest version.
        configuration: its properties of ours.
    """

    name: str
    location: str
    table_id: str
    version: int
    configuration: Mapping[str, str]


@dataclass(frozen=True)
class TableChange:
    """What became of the table at a location: ``before`` is None for a new one, ``after`` for one that is gone."""

    before: SeenTable | None
    after: SeenTable | None

    @property
    def location(self) -> str:
        """Where the table is or was."""
        found = self.after or self.before
        return "" if found is None else found.location

    @property
    def is_another(self) -> bool:
        """Whether another table has taken the place."""
        return self.before is not None and self.after is not None and self.before.table_id != self.after.table_id

    @property
    def properties_changed(self) -> bool:
        """Whether the properties of ours differ, or there were none before."""
        before = None if self.before is None or self.is_another else self.before.configuration
        return before != (None if self.after is None else self.after.configuration)


class Action(ABC):
    """Something that the service does for a table because of a change."""

    @classmethod
    @abstractmethod
    def due(cls, change: TableChange) -> Action | None:
        """The action that a change asks for, None when it asks for none of this kind."""

    @abstractmethod
    def apply(self, workers: Workers) -> None:
        """Does it; quick, since the loop waits."""
