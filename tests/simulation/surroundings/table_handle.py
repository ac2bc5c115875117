"""What stands for the shim's handle of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulation.surroundings.paths import ROOT, phase_of
from simulation.surroundings.table_state import State
from simulation.surroundings.table_transaction import Transaction
from simulation.surroundings.table_vacuum import JavaVacuum, Vacuum
from simulation.surroundings.table_versions import JavaVersions, Versions

if TYPE_CHECKING:
    from simulation.surroundings.sessions import Session
    from simulation.world import World


class Handle:
    """See ``catalog.jvm.table_handle.TableHandle``."""

    kind, name, detail = "delta", "t", ""

    def __init__(self, world: World, spark: Session) -> None:
        self._world = world
        self._spark = spark

    def location(self) -> str:
        """See ``TableHandle.location``."""
        return ROOT

    def exists(self) -> bool:
        """See ``TableHandle.exists``."""
        self._world.faults.before("snapshot")
        return True

    def state(self, session: Session | None = None) -> State:
        """See ``TableHandle.state``."""
        return State(self._world, session or self._spark, self._world.log.read())

    def begin(self, session: Session) -> Transaction:
        """See ``TableHandle.begin``."""
        self._world.observation.on_begin()
        return Transaction(self._world, session, self._world.log.read("begin"))

    def versions(self, session: Session) -> Versions:
        """See ``TableHandle.versions``."""
        return Versions(session, JavaVersions(self._world))  # type: ignore[arg-type]

    def vacuum(self, session: Session, delete_before: int, retention_hours: int) -> Vacuum:
        """See ``TableHandle.vacuum``."""
        java = JavaVacuum(self._world, delete_before)
        return Vacuum(session, java, self.versions(session), delete_before)  # type: ignore[arg-type]

    def write_text(self, file: str, text: str) -> None:
        """See ``TableHandle.write_text``."""
        self._world.store.write_text(f"{ROOT}/{file}", text, phase_of(file))

    def create_text(self, file: str, text: str) -> bool:
        """See ``TableHandle.create_text``."""
        return self._world.store.create_text(f"{ROOT}/{file}", text, phase_of(file))

    def read_text(self, file: str) -> str | None:
        """See ``TableHandle.read_text``."""
        return self._world.store.read_text(f"{ROOT}/{file}", phase_of(file))

    def list_names(self, folder: str) -> list[str]:
        """See ``TableHandle.list_names``."""
        return self._world.store.names(f"{ROOT}/{folder}", phase_of(f"{folder}/"))

    def list_names_containing(self, folder: str, texts: Sequence[str]) -> list[str]:
        """See ``TableHandle.list_names_containing``."""
        place = "/".join(filter(None, (ROOT, folder)))
        names = self._world.store.names(place, "vacuum: list")
        return [name for name in names if any(text in name for text in texts)]

    def delete(self, file: str) -> None:
        """See ``TableHandle.delete``."""
        self._world.store.delete(f"{ROOT}/{file}", phase_of(file))

    def check_rights(self) -> None:
        """Every user has all rights."""

    def probe_write(self, file: str) -> None:
        """See ``TableHandle.probe_write``."""
        self._world.faults.before("write check")
