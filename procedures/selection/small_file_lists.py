"""The small files of a table by partition, as lists that are kept between runs and follow the commits of the table."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from catalog.files.file_table import UNKNOWN, Integers
from procedures.groups.plan import InputFile
from procedures.selection.size_tiers import SmallFiles

# Columns of ``TableSnapshot.file_rows`` that the lists are made of.
COLUMNS = ("path", "size", "rows", "first_time", "last_time", "tier", "partition", "rewrites")
Columns = dict[str, NDArray[Any]]
"""One array per name in ``COLUMNS``."""

_OF_FILES = ("path", "size", "rows", "first_time", "last_time", "tier", "rewrites")
# Files of all lists that are kept; each takes about half a kilobyte.
MAX_KEPT_FILES = 400_000


@dataclass(frozen=True, eq=False)
class PartitionFiles:
    """Files of one table partition that may be merged, by time of their first rows and path. One entry per file.

    Attributes:
        path: as in the log.
        size: bytes.
        rows: number of rows, ``UNKNOWN`` without statistics.
        first_time: when the first rows were written, in epoch milliseconds.
        last_time: when the last ones were.
        tier: see ``SmallFiles.lifted_to``.
        rewrites: how many times optimizations have written the rows, on average.
    """

    path: NDArray[np.object_]
    size: Integers
    rows: Integers
    first_time: Integers
    last_time: Integers
    tier: Integers
    rewrites: NDArray[np.float64]

    def __len__(self) -> int:
        """The number of files."""
        return len(self.path)

    @property
    def small_files(self) -> SmallFiles:
        """What the policy is asked about."""
        return SmallFiles(self.size, self.first_time, self.last_time, self.tier)

    def input_file(self, position: int) -> InputFile:
        """A file as a plan has it."""
        rows = int(self.rows[position])
        times = int(self.first_time[position]), int(self.last_time[position])
        size = int(self.size[position])
        rewrites = float(self.rewrites[position])
        return InputFile(str(self.path[position]), "", size, None if rows == UNKNOWN else rows, -1, *times, rewrites)


class SmallFileLists:
    """The small files of one version of a table, a list for each partition that has any.

    Args:
        version: the version.
        columns: ``COLUMNS`` of the files.
    """

    def __init__(self, version: int, columns: Columns) -> None:
        self.version = version
        self._lists = _by_partition(columns)
        self._partition_of = dict(zip(columns["path"], columns["partition"], strict=True))
        self._unsettled = set(self._lists)

    def __len__(self) -> int:
        """The number of files."""
        return len(self._partition_of)

    def has_any(self, paths: Collection[str]) -> bool:
        """Whether some of these files are still listed."""
        return any(path in self._partition_of for path in paths)

    def unsettled(self) -> Iterator[tuple[str, PartitionFiles]]:
        """The partitions in which there may be something to merge, in their order, with their files."""
        for partition in sorted(self._unsettled):
            files = self._lists.get(partition)
            if files is not None:
                yield partition, files

    def settle(self, partition: str, files: PartitionFiles) -> None:
        """Records that there is nothing to merge in a partition as long as its files do not change.

        Args:
            partition: the partition.
            files: the files that were looked at.
        """
        if self._lists.get(partition) is files:
            self._unsettled.discard(partition)

    def change(self, version: int, gone: Collection[str], added: Columns) -> None:
        """Makes the lists those of a newer version; only the partitions that changed are unsettled by that.

        Args:
            version: the newer version.
            gone: paths of files that are not listed any more, or are among ``added``.
            added: ``COLUMNS`` of the files that are listed instead.
        """
        changed = {self._partition_of.pop(path) for path in gone if path in self._partition_of}
        more = _by_partition(added)
        self._partition_of.update(zip(added["path"], added["partition"], strict=True))
        for partition in changed | set(more):
            files = _updated_files(self._lists.pop(partition, None), gone, more.get(partition))
            if len(files):
                self._lists[partition] = files
                self._unsettled.add(partition)
            else:
                self._unsettled.discard(partition)
        self.version = version


class KeptLists:
    """Lists that are kept between the runs of this process, the longest unused dropped first.

    Args:
        most: files of all of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lists: OrderedDict[Hashable, SmallFileLists] = OrderedDict()
        self._lock = Lock()

    def take(self, key: Hashable) -> SmallFileLists | None:
        """Returns lists that are kept, and keeps them no longer: they may be changed by one run at a time."""
        with self._lock:
            return self._lists.pop(key, None)

    def put(self, key: Hashable, lists: SmallFileLists) -> None:
        """Keeps lists."""
        with self._lock:
            self._lists[key] = lists
            while sum(map(len, self._lists.values())) > self._most:
                self._lists.popitem(last=False)


def columns_of(files: pa.Table) -> Columns:
    """The columns of rows of ``TableSnapshot.file_rows``."""
    columns: Columns = {}
    for name in COLUMNS:
        column = files.column(name).combine_chunks()
        columns[name] = (column.fill_null(UNKNOWN) if name == "rows" else column).to_numpy(zero_copy_only=False)
    return columns


def _by_partition(columns: Columns) -> dict[str, PartitionFiles]:
    count = len(columns["path"])
    if not count:
        return {}
    partitions, number = np.unique(columns["partition"].astype(object), return_inverse=True)
    order = np.lexsort((columns["path"].astype(str), columns["first_time"], number))
    ends = np.cumsum(np.bincount(number, minlength=len(partitions)))
    values = [columns[name][order] for name in _OF_FILES]
    starts = [0, *ends[:-1]]
    return {
        str(partition): PartitionFiles(*(value[start:end].copy() for value in values))
        for partition, start, end in zip(partitions, starts, ends, strict=True)
    }


def _updated_files(files: PartitionFiles | None, gone: Collection[str], more: PartitionFiles | None) -> PartitionFiles:
    """The files of a partition without some, and with others."""
    parts = []
    if files is not None:
        kept = np.fromiter((path not in gone for path in files.path), np.bool_, len(files))
        parts.append(PartitionFiles(*(getattr(files, name)[kept] for name in _OF_FILES)))
    if more is not None:
        parts.append(more)
    values = [np.concatenate([getattr(part, name) for part in parts]) for name in _OF_FILES]
    order = np.lexsort((values[0].astype(str), values[_OF_FILES.index("first_time")]))
    return PartitionFiles(*(value[order] for value in values))
