"""What stands for a version of the table: its facts, and the list of its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql.types import StructType

from catalog.files.arrays import UNKNOWN
from catalog.files.file_table import Blocks, FileTable
from catalog.jvm.table_state import LogExtent, TableFacts
from otree.block import REWRITES_TAG, TIER_TAG, TIME_RANGE_TAG
from simulation.delta_log import AddedFile
from simulation.surroundings.frames import Frame
from simulation.surroundings.paths import ROOT
from simulation.surroundings.statements import ranges_of

if TYPE_CHECKING:
    from simulation.surroundings.sessions import Session
    from simulation.world import World


TABLE_ID = "simulated"
SCHEMA = StructType().add("id", "long")
# An indexed table's property, so that events are copied from the log.
PROPERTIES = {"qbeast.lastRevisionID": "0"}


class State:
    """See ``catalog.jvm.table_state.TableState``."""

    def __init__(self, world: World, spark: Session, version: int) -> None:
        self.spark = spark
        self._world = world
        self.version = version

    @property
    def _files(self) -> dict[str, AddedFile]:
        return self._world.log.live[self.version]

    def facts(self) -> TableFacts:
        """See ``TableState.facts``."""
        committed_at = self._world.log.commits[self.version].time
        return TableFacts(
            self.version, committed_at, TABLE_ID, PROPERTIES, SCHEMA, (), self._world.retention_hours, {}, {}
        )

    def extent(self) -> LogExtent:
        """See ``TableState.extent``."""
        log = self._world.log
        first = max((c for c in log.checkpoints if c <= self.version), default=-1)
        return LogExtent(len(self._files), 40_000 * (self.version - first), 40_000 * (self.version - first))

    def size_in_bytes(self) -> int:
        """See ``TableState.size_in_bytes``."""
        return sum(file.size for file in self._files.values())

    def files(self) -> Frame:
        """See ``TableState.files``."""
        rows = [{"path": file.path, "size": file.size, "deletion_vector": file.vector} for file in self._files.values()]
        return Frame(["path", "size", "deletion_vector"], rows)

    def actions(self) -> Frame:
        """The files that the version names, as ``TableVersions`` gets them out of its actions."""
        rows: list[dict[str, Any]] = [
            {"path": f"{ROOT}/{path}", "size": file.size, "is_added": True, "removed_at": None}
            for file in self._files.values()
            for path in file.needs
        ]
        rows += [
            {"path": f"{ROOT}/{path}", "size": file.size, "is_added": False, "removed_at": removed_at}
            for path, file, removed_at in self._world.log.tombstones(self.version)
        ]
        return Frame(["path", "size", "is_added", "removed_at"], rows)

    def file_table(self) -> FileTable:
        """All files of the version."""
        cache = self._world.log.cache
        if self.version not in cache:
            files = sorted(self._files.values(), key=lambda file: file.path)
            cache[self.version] = file_table(files, *ranges_of(self._world, files))
        return cache[self.version]  # type: ignore[return-value]


_NO_NUMBERS = np.zeros(0, np.int64)
_NO_BLOCKS = Blocks(_NO_NUMBERS, _NO_NUMBERS, (), _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


def file_table(files: Sequence[AddedFile], low: Any, high: Any) -> FileTable:
    """The table of some unindexed files, in the order of their paths.

    Args:
        files: the files.
        low: their smallest rows.
        high: their largest rows.
    """
    count = len(files)
    spans = [
        tuple(map(int, file.tags[TIME_RANGE_TAG].split(","))) if TIME_RANGE_TAG in file.tags else (file.time,) * 2
        for file in files
    ]

    def integers(values: Iterable[int]) -> Any:
        return np.fromiter(values, np.int64, count)

    def objects(values: Iterable[str]) -> Any:
        made = np.empty(count, np.object_)
        made[:] = list(values)
        return made

    unknown, no = np.full(count, UNKNOWN), np.zeros(count, np.bool_)
    return FileTable(
        path=objects(file.path for file in files),
        deletion_vector=objects(file.vector for file in files),
        size=integers(file.size for file in files),
        modification_time=integers(file.time for file in files),
        rows=integers(file.rows - len(file.hidden) for file in files),
        revision=np.zeros(count, np.int64),
        write=np.arange(count),
        first_time=integers(span[0] for span in spans),
        last_time=integers(span[1] for span in spans),
        outdated=no,
        unreadable=no,
        band_first=unknown,
        band_end=unknown,
        rewrites=np.array([float(file.tags.get(REWRITES_TAG, 0)) for file in files]),
        low=low,
        high=high,
        tagged_revision=unknown,
        deleted=integers(len(file.hidden) for file in files),
        tier=integers(int(file.tags.get(TIER_TAG, 0)) for file in files),
        partition=objects("" for _ in files),
        blocks=_NO_BLOCKS,
        write_ids=tuple(file.path for file in files),
    )
