"""What stands for the shim's versions of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from catalog.jvm.table_versions import TableVersions
from simulation.faults import StoreError
from simulation.surroundings.frames import Frame
from simulation.surroundings.paths import ROOT
from simulation.surroundings.table_state import State

if TYPE_CHECKING:
    from simulation.world import World


class JavaVersions:
    """The shim's object behind ``Versions``."""

    def __init__(self, world: World) -> None:
        self.world = world

    def oldest(self) -> int:
        self.world.log.read("versions")
        return self.world.log.oldest()

    def newest(self) -> int:
        return self.world.log.read("versions")

    def at(self, millis: int, or_oldest: bool) -> int:
        self.world.log.read("versions")
        return self.world.log.at(millis, or_oldest)

    def timeOf(self, version: int) -> int:  # noqa: N802
        return self.world.log.commits[version].time

    def logGuard(self) -> str:  # noqa: N802
        return ""

    def checkpointBefore(self, version: int) -> int:  # noqa: N802
        self.world.faults.before("clean log")
        return max((c for c in self.world.log.checkpoints if c <= version), default=-1)

    def checkpoint(self, version: int) -> None:
        self.world.faults.before("checkpoint")
        if not self.world.log.can_make(version):
            raise StoreError(f"version {version} cannot be made")
        self.world.log.checkpoints.add(version)

    def logBefore(self, version: int) -> tuple[int, int]:  # noqa: N802
        count = sum(v < version for v in self.world.log.stored)
        return count, 1000 * count

    def deleteLogBefore(self, version: int) -> tuple[int, int]:  # noqa: N802
        log, count = self.world.log, 0
        if version not in log.checkpoints:
            raise StoreError(f"version {version} has no checkpoint")
        for number in sorted({*log.stored, *log.checkpoints}):
            if number < version:
                self.world.faults.before("clean log")
                made = [v for v in range(log.newest + 1) if log.can_make(v)]
                log.stored.discard(number)
                log.checkpoints.discard(number)
                self.world.invariants.on_log_deletion(number, made)
                count += 1
        return count, 1000 * count

    def commits(self, first: int, last: int) -> Frame:
        log = self.world.log
        log.read("versions")
        rows: list[dict[str, Any]] = []
        numbers = [v for v in range(max(first, 0), last + 1) if v in log.stored]
        if first >= 0 and len(numbers) < last + 1 - first:
            raise StoreError("the log lacks a commit")
        for version in numbers:
            commit = log.commits[version]
            for files, is_added in ((commit.added, True), (commit.removed, False)):
                rows += [
                    {
                        "version": version,
                        "is_added": is_added,
                        "path": f"{ROOT}/{path}",
                        "size": file.size,
                        "removed_at": None if is_added else commit.removed_at,
                    }
                    for file in files
                    for path in file.needs
                ]
        return Frame(["version", "is_added", "path", "size", "removed_at"], rows)

    def existing(self, paths: Frame, parallelism: int) -> Frame:
        self.world.faults.before("vacuum: look")
        return inventory(self.world, sorted({row["path"] for row in paths.rows}))


class Versions(TableVersions):
    """``TableVersions`` over the simulated log."""

    _java: Any

    def state(self, version: int) -> State:  # type: ignore[override]
        """See ``TableVersions.state``."""
        if not self._java.world.log.can_make(version):
            raise StoreError(f"version {version} cannot be made")
        return State(self._java.world, self.spark, version)  # type: ignore[arg-type]

    def _named(self, actions: Frame, *columns: str) -> Frame:  # type: ignore[override]
        return actions

    def files_with_deletes(self, version: int) -> Frame:  # type: ignore[override]
        """See ``TableVersions.files_with_deletes``."""
        return self.state(version).files().where("deletion_vector <> ''").select("path", "deletion_vector")


def inventory(world: World, paths: Iterable[str]) -> Frame:
    """The existing files of some paths, in the form of Delta's inventories."""
    objects = world.store.objects
    rows = [
        {
            "path": path,
            "length": objects[path].size,
            "isDir": False,
            "modificationTime": objects[path].modified_at,
        }
        for path in paths
        if path in objects
    ]
    return Frame(["path", "length", "isDir", "modificationTime"], rows)
