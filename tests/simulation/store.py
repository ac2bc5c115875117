"""An object store: whole objects by path, created or replaced in one step, and listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulation.faults import DELAYED_WRITE, LATE_LISTING, TORN_WRITE, Faults, StoreError
from simulation.scheduler import Scheduler


@dataclass(slots=True)
class StoredObject:
    """An object.

    Attributes:
        data: a text, or the rows of a data file.
        size: bytes.
        modified_at: epoch milliseconds, by the clock of the store.
        listed_from: listings before this time do not show it.
    """

    data: object
    size: int
    modified_at: int
    listed_from: int = 0


class Store:
    """The store of a history.

    Args:
        scheduler: runs the history.
        faults: what goes wrong.

    Attributes:
        objects: by path.
        on_delete: called with the path of a data file before it is deleted.
    """

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self.objects: dict[str, StoredObject] = {}
        self._late: list[tuple[int, str, str, bool]] = []

    # ------------------------------------------------------------------------------------------------------- texts

    def create_text(self, path: str, text: str, phase: str) -> bool:
        """Writes a text unless there is one; like a conditional request, it is there as a whole or not at all."""
        self._faults.before(phase)
        self._settle()
        if path in self.objects:
            return False
        if self._faults.strikes(DELAYED_WRITE):
            self._late.append((self._scheduler.now + self._faults.milliseconds(60_000), path, text, False))
            raise StoreError("the request timed out")
        if self._faults.strikes(TORN_WRITE, 0.5):
            # The answer is lost, not the object.
            self._put(path, text, len(text))
            raise StoreError("the connection was reset")
        self._put(path, text, len(text))
        return True

    def write_text(self, path: str, text: str, phase: str) -> None:
        """Writes a text in place of one that is there; a torn write leaves a part of it."""
        self._faults.before(phase)
        self._settle()
        if self._faults.strikes(DELAYED_WRITE):
            self._late.append((self._scheduler.now + self._faults.milliseconds(60_000), path, text, True))
            raise StoreError("the request timed out")
        if self._faults.strikes(TORN_WRITE):
            self._put(path, text[: int(len(text) * self._faults.share())], len(text))
            if self._faults.share() < 0.5:
                raise StoreError("the connection was reset")
            # Readers see the beginning before the rest is there.
            self._scheduler.step(phase)
        self._put(path, text, len(text))

    def read_text(self, path: str, phase: str) -> str | None:
        """Returns a text, None when there is none."""
        self._faults.before(phase)
        self._settle()
        stored = self.objects.get(path)
        return None if stored is None else str(stored.data)

    def names(self, folder: str, phase: str) -> list[str]:
        """Returns the names of the objects in a folder, sorted."""
        self._faults.before(phase)
        self._settle()
        start, now = f"{folder}/", self._scheduler.now
        return sorted(
            rest
            for path, stored in self.objects.items()
            if path.startswith(start) and "/" not in (rest := path[len(start) :]) and stored.listed_from <= now
        )

    def delete(self, path: str, phase: str) -> None:
        """Deletes an object; a missing one is no error."""
        self._faults.before(phase)
        self._settle()
        self.objects.pop(path, None)

    # ---------------------------------------------------------------------------------------------------------- data

    def put_data(self, path: str, data: object, size: int, phase: str) -> None:
        """Writes a data file."""
        self._faults.before(phase)
        self._put(path, data, size)

    def data(self, path: str, phase: str) -> object:
        """Returns a data file.

        Raises:
            FileNotFoundError: there is none.
        """
        self._faults.before(phase)
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path].data

    # ---------------------------------------------------------------------------------------------------------- parts

    def _put(self, path: str, data: object, size: int) -> None:
        now = self._scheduler.now
        listed_from = 0
        # Protections and purges find each other by listings that show every object; see docs/reliability.md.
        is_exempt = "/protected/" in path or "/reclaimed/" in path
        if not is_exempt and path not in self.objects and self._faults.strikes(LATE_LISTING):
            listed_from = now + self._faults.milliseconds(20_000)
        self.objects[path] = StoredObject(data, size, now, listed_from)

    def _settle(self) -> None:
        """Lets writes arrive whose time has come."""
        if not self._late:
            return
        now = self._scheduler.now
        for late in [entry for entry in self._late if entry[0] <= now]:
            self._late.remove(late)
            _, path, text, replaces = late
            if replaces or path not in self.objects:
                self.objects[path] = StoredObject(text, len(text), now)


Phases = Callable[[str], str]


class Texts:
    """Small texts that several processes share; see ``catalog.state.fleet_ledger.Texts``.

    Args:
        store: where they are.
        folder: of the texts.
    """

    def __init__(self, store: Store, folder: str) -> None:
        self._store = store
        self._folder = folder

    def create(self, name: str, text: str) -> bool:
        """See ``Texts.create``."""
        return self._store.create_text(f"{self._folder}/{name}", text, "fleet")

    def read(self, name: str) -> str | None:
        """See ``Texts.read``."""
        return self._store.read_text(f"{self._folder}/{name}", "fleet")

    def names(self) -> list[str]:
        """See ``Texts.names``."""
        return self._store.names(self._folder, "fleet")

    def delete(self, names: list[str]) -> None:
        """See ``Texts.delete``."""
        for name in names:
            self._store.delete(f"{self._folder}/{name}", "fleet")
