"""What stands for Delta's vacuum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from catalog.jvm.table_vacuum import TableVacuum
from simulation.surroundings.frames import Frame
from simulation.surroundings.paths import ROOT
from simulation.surroundings.table_versions import inventory

if TYPE_CHECKING:
    from simulation.world import World


class JavaVacuum:
    """The shim's object behind ``Vacuum``: the steps of Delta's vacuum."""

    def __init__(self, world: World, delete_before: int) -> None:
        self._world = world
        self._delete_before = delete_before

    def listing(self, parallelism: int) -> Frame:
        names = self._world.store.names(ROOT, "vacuum: list")
        return inventory(self._world, [f"{ROOT}/{name}" for name in names])

    def below(self, files: Frame) -> Frame:
        return files

    def outsideOfOtherTables(self, files: Frame, reasons: Sequence[str]) -> Frame:  # noqa: N802 - the name in the shim
        return files

    def _needed(self) -> set[str]:
        log = self._world.log
        newest = log.read("vacuum: look")
        live = {f"{ROOT}/{path}" for file in log.live[newest].values() for path in file.needs}
        recent = {f"{ROOT}/{path}" for path, _, at in log.tombstones(newest) if at >= self._delete_before}
        return live | recent

    def run(self, mode: str, files: Frame | None, dry: bool) -> Frame | None:
        needed = self._needed()
        if files is None:
            log = self._world.log
            names = {f"{ROOT}/{path}" for path, _, _ in log.tombstones(log.newest)}
            files = inventory(self._world, sorted(names))
        old = [
            row["path"]
            for row in files.rows
            if row["path"] not in needed and row["modificationTime"] < self._delete_before
        ]
        if dry:
            return Frame(["path"], [{"path": path} for path in old])
        self._world.log_operation("VACUUM START", {})
        count = sum(self._world.delete_data(path, "vacuum: delete") for path in old)
        self._world.log_operation("VACUUM END", {"numDeletedFiles": str(count)})
        return None

    def delete(self, paths: Sequence[str], threads: int) -> list[int]:
        sizes = []
        for path in paths:
            stored = self._world.store.objects.get(path)
            is_old = stored is not None and stored.modified_at < self._delete_before
            sizes.append(stored.size if is_old and self._world.delete_data(path, "vacuum: delete") else -1)  # type: ignore[union-attr]
        return sizes

    def started(self, paths: Frame, size: int) -> None:
        self._world.log_operation("VACUUM START", {})

    def ended(self, deleted: int, folders: int) -> None:
        self._world.log_operation("VACUUM END", {"numDeletedFiles": str(deleted)})

    def failed(self) -> None:
        self._world.log_operation("VACUUM END", {"numDeletedFiles": "0"})

    def cover(self, version: int) -> None:
        self._world.faults.before("vacuum: look")


class Vacuum(TableVacuum):
    """``TableVacuum`` over the simulated log and store."""

    def tombstones(self) -> Frame:  # type: ignore[override]
        """See ``TableVacuum.tombstones``."""
        rows = self._versions.state(self._versions.newest()).actions().rows  # type: ignore[attr-defined]
        removed = [{**row, "deletionTimestamp": row["removed_at"]} for row in rows if not row["is_added"]]
        return Frame(["path", "size", "deletionTimestamp"], removed)
