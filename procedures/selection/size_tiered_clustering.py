"""SizeTieredClustering: merges small files of a table partition with files of like size, without an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow.compute as pc

from catalog.settings.setting import duration
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Parameter
from procedures.groups.plan import FileGroup, FileRun, Selection
from procedures.groups.selection_strategy import (
    MAX_FILES_PER_GROUP,
    SelectionSettings,
    Selector,
    Strategy,
    check_least,
)
from procedures.selection.size_tiers import MergedRun, TierPolicy, merges
from procedures.selection.small_file_lists import (
    COLUMNS,
    MAX_KEPT_FILES,
    KeptLists,
    PartitionFiles,
    SmallFileLists,
    columns_of,
)

NAME = "SizeTieredClustering"
_KEPT_LISTS = KeptLists(MAX_KEPT_FILES)
MIN_FILES, TIER_RATIO, ISOLATE_BYTES = 4, 4, 128 * 1024 * 1024
_DURATION = duration("a positive duration such as '1 hour' or '7 days'", spark_syntax=False)


class SizeTieredClustering(Strategy):
    """Merges files of a partition that are of like size once there are enough of them; see ``size_tiers``.

    It takes files without an index and without deletion vectors. A merged file has the rows of its files in the order
    in which they were written; a larger file of a time between stays where it is.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = (
        "Merges small unindexed files of a partition with files of like size; for tables without an index, too."
    )
    needs_index_columns: ClassVar[bool] = False
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("min_files", "INT", "Files of a tier that are merged, at least 2.", MIN_FILES),
        Parameter("min_bytes", "BIGINT", "A tier with so many bytes is merged with fewer files, too.", None),
        Parameter(
            "tier_ratio",
            "INT",
            "How many times larger the files of a tier are than those of the tier below; min_files if that is smaller.",
            TIER_RATIO,
        ),
        Parameter("isolate_bytes", "BIGINT", "Files of this size are never merged again.", ISOLATE_BYTES),
        Parameter(
            "max_time_range",
            "STRING",
            "Time between the first and the last write of a merged file's rows, at most, such as '1 hour'.",
            None,
        ),
    )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        policy_of(options)

    def begin(self, settings: SelectionSettings) -> Selector:
        """See ``Strategy.begin``."""
        return _TierSelector(settings)


def policy_of(options: Mapping[str, Any]) -> TierPolicy:
    """The policy that options ask for.

    Args:
        options: values of the strategy's options, all of them.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    check_least(options, {"min_files": 2, "min_bytes": 1, "tier_ratio": 2, "isolate_bytes": 1})
    time_range = options["max_time_range"]
    return TierPolicy(
        options["min_files"],
        options["min_bytes"],
        options["tier_ratio"],
        options["isolate_bytes"],
        None if time_range is None else int(_DURATION.parse("max_time_range", time_range)),
    )


def small_files(snapshot: TableSnapshot, isolate_bytes: int) -> SmallFileLists:
    """Lists the files of a version that may be merged.

    Args:
        snapshot: the version.
        isolate_bytes: larger files are left out.
    """
    columns = snapshot.file_table
    fits = (columns.revision == 0) & (columns.deletion_vector == "") & (columns.size < isolate_bytes)
    return SmallFileLists(snapshot.version, {name: getattr(columns, name)[fits] for name in COLUMNS})


def changed(lists: SmallFileLists, snapshot: TableSnapshot, isolate_bytes: int) -> bool:
    """Makes lists those of a newer version with the same metadata; reads the commits in between only.

    Args:
        lists: the lists.
        snapshot: the newer version.
        isolate_bytes: larger files are left out.

    Returns:
        Whether that was possible.
    """
    if lists.version == snapshot.version:
        return True
    changes = snapshot.changes_since(lists.version, (*COLUMNS, "revision", "deletion_vector"))
    if changes is None:
        return False
    added = changes.added
    if added.num_rows:
        is_indexed, has_deletes = pc.not_equal(added["revision"], 0), pc.not_equal(added["deletion_vector"], "")
        is_large = pc.greater_equal(added["size"], isolate_bytes)
        added = added.filter(pc.invert(pc.or_(pc.or_(is_indexed, has_deletes), is_large)))
    lists.change(snapshot.version, changes.gone, columns_of(added))
    return True


@dataclass(frozen=True)
class _Merge:
    """A run of files of a partition."""

    partition: str
    files: PartitionFiles
    run: MergedRun

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(str(self.files.path[position]) for position in self.run.positions)

    @property
    def bytes(self) -> int:
        return int(self.files.size[list(self.run.positions)].sum())


def groups_of(
    lists: SmallFileLists, policy: TierPolicy, most_bytes: int, is_apart: Callable[[], bool] = lambda: False
) -> Iterator[FileGroup]:
    """The groups to rewrite; pure. Looks at the partitions that are not settled.

    Args:
        lists: files that may be merged.
        policy: when to merge.
        most_bytes: bytes after which a group takes no further run.
        is_apart: whether a group has files of one partition only.
    """
    taken: list[_Merge] = []
    size = count = 0
    for merge in _merges_of(lists, policy):
        files = len(merge.run.positions)
        is_full = size >= most_bytes or count + files > MAX_FILES_PER_GROUP
        if taken and (is_full or (is_apart() and merge.partition != taken[-1].partition)):
            yield _group(taken)
            taken, size, count = [], 0, 0
        taken.append(merge)
        size += merge.bytes
        count += files
    if taken:
        yield _group(taken)


def _merges_of(lists: SmallFileLists, policy: TierPolicy) -> Iterator[_Merge]:
    for partition, files in lists.unsettled():
        runs = merges(files.small_files, policy)
        if not runs:
            lists.settle(partition, files)
        for run in runs:
            yield _Merge(partition, files, replace(run, positions=run.positions[:MAX_FILES_PER_GROUP]))


def _group(merged: Sequence[_Merge]) -> FileGroup:
    chosen = tuple(merge.files.input_file(position) for merge in merged for position in merge.run.positions)
    runs = tuple(FileRun(merge.paths, merge.run.tier) for merge in merged)
    partitions = {merge.partition for merge in merged}
    of_one = f" of partition {merged[0].partition}" if merged[0].partition else ""
    where = of_one if len(partitions) == 1 else f" of {len(partitions)} partitions"
    note = f"{len(chosen)} small files{where} become {len(runs)}"
    return FileGroup(NAME, 0, f"FILES_{len(chosen)}_TO_{len(runs)}", chosen, note, runs=runs)


class _TierSelector(Selector):
    """Gives the groups of one look at the table one by one, and looks again when all are rewritten.

    A look reads what changed since the last one of this process, and compares the files of the partitions that changed.
    """

    def __init__(self, settings: SelectionSettings) -> None:
        super().__init__(settings)
        self._policy = policy_of(settings.options)
        self._version = -1
        self._groups: Iterator[FileGroup] = iter(())
        # Files of the groups since the last look.
        self._chosen: set[str] = set()
        # After a conflict, a group has one partition, so that a writer of one partition does not stop the others.
        self._is_contended = False

    def limit_batches(self, most_bytes: int | None) -> None:
        """See ``Selector.limit_batches``."""
        super().limit_batches(most_bytes)
        self._is_contended = most_bytes is not None

    def select(self, snapshot: TableSnapshot) -> Selection:
        """See ``Selector.select``."""
        group = next(self._groups, None)
        if group is None and snapshot.version != self._version:
            self._version = snapshot.version
            lists, most_bytes = self._look(snapshot), self.settings.bytes_per_iter
            self._groups = groups_of(lists, self._policy, most_bytes, lambda: self._is_contended)
            self._chosen.clear()
            group = next(self._groups, None)
        if group is None:
            return Selection(note=f"{NAME}: no partition has {self._policy.min_files} small files of like size")
        self._chosen.update(file.path for file in group.files)
        return Selection(group)

    def _look(self, snapshot: TableSnapshot) -> SmallFileLists:
        isolate_bytes = self._policy.isolate_bytes
        if snapshot.restrictions or not snapshot.location:
            return small_files(snapshot, isolate_bytes)
        # Whether the tags of a file can be read depends on the configuration.
        of_table = snapshot.location, snapshot.table_id, frozenset(snapshot.configuration.items())
        key = *of_table, snapshot.partition_columns, self._policy
        lists = _KEPT_LISTS.take(key)
        # If another writer removed files of a group, the lists are read anew.
        if lists is None or not changed(lists, snapshot, isolate_bytes) or lists.has_any(self._chosen):
            lists = small_files(snapshot, isolate_bytes)
        _KEPT_LISTS.put(key, lists)
        return lists
