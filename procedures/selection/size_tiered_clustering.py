"""SizeTieredClustering: merges small files of a table partition with files of like size, without an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions as F

from catalog.errors import InvalidArgumentError
from catalog.properties.setting import duration
from catalog.table.file_columns import UNKNOWN, Integers
from catalog.table.snapshot import TableSnapshot
from procedures.declaration import Parameter
from procedures.optimizer.plan import FileGroup, FileRun, InputFile, Selection
from procedures.selection.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Selector, Strategy
from procedures.selection.size_tiers import MergedRun, SmallFiles, TierPolicy, merges

NAME = "SizeTieredClustering"
# Small files that the driver judges at once; each takes about half a kilobyte of its memory.
MAX_FILES = 200_000
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
    for name, least in (("min_files", 2), ("min_bytes", 1), ("tier_ratio", 2), ("isolate_bytes", 1)):
        value = options[name]
        if value is not None and value < least:
            raise InvalidArgumentError.of(name, value, f"a whole number of at least {least}")
    time_range = options["max_time_range"]
    return TierPolicy(
        options["min_files"],
        options["min_bytes"],
        options["tier_ratio"],
        options["isolate_bytes"],
        None if time_range is None else int(_DURATION.parse("max_time_range", time_range)),
    )


@dataclass(frozen=True, eq=False)
class Candidates:
    """Files that may be merged, by partition, time of their first rows, and path. One entry per file.

    Attributes:
        path: as in the log.
        size: bytes.
        rows: number of rows, ``UNKNOWN`` without statistics.
        first_time: when the first rows were written, in epoch milliseconds.
        last_time: when the last ones were.
        tier: see ``SmallFiles.lifted_to``.
        partition: values of the partition columns, as text.
    """

    path: NDArray[np.object_]
    size: Integers
    rows: Integers
    first_time: Integers
    last_time: Integers
    tier: Integers
    partition: NDArray[np.object_]

    @classmethod
    def of(cls, snapshot: TableSnapshot, isolate_bytes: int) -> Candidates:
        """Reads the oldest files of a version that may be merged, at most ``MAX_FILES``; see ``FileColumns``.

        Args:
            snapshot: the version.
            isolate_bytes: larger files are left out.
        """
        columns = snapshot.columns
        if columns is not None:
            fits = (columns.revision == 0) & (columns.deletion_vector == "") & (columns.size < isolate_bytes)
            kept = columns.where(fits)
            return cls._sorted(
                kept.path,
                kept.size,
                kept.rows,
                kept.first_time,
                kept.last_time,
                kept.tier,
                kept.partition.astype(object),
            )
        small = snapshot.file_rows.where(
            (F.col("revision") == 0) & (F.col("deletion_vector") == "") & (F.col("size") < isolate_bytes)
        )
        wanted = ("path", "size", "rows", "first_time", "last_time", "tier", "partition")
        found = small.select(*wanted).orderBy("first_time", "path").limit(MAX_FILES).toArrow()
        values = {name: found.column(name).to_numpy() for name in wanted if name != "rows"}
        rows = found.column("rows").combine_chunks().fill_null(UNKNOWN).to_numpy()
        times = values["first_time"], values["last_time"]
        return cls._sorted(values["path"], values["size"], rows, *times, values["tier"], values["partition"])

    @classmethod
    def _sorted(cls, path: NDArray[np.object_], *others: NDArray[Any]) -> Candidates:
        size, rows, first, last, tier, partition = others
        partitions, number = np.unique(partition, return_inverse=True) if len(path) else (partition, np.array([], int))
        order = np.lexsort((path.astype(str), first, number)) if len(path) else number
        return cls(
            path[order], size[order], rows[order], first[order], last[order], tier[order], partitions[number][order]
        )

    def partitions(self) -> Iterator[tuple[str, Integers]]:
        """Each partition with the positions of its files."""
        if not len(self.path):
            return
        _, first = np.unique(self.partition, return_index=True)
        for start, end in zip(first, [*first[1:], len(self.path)], strict=True):
            yield str(self.partition[start]), np.arange(start, end)

    def input_file(self, position: int) -> InputFile:
        """A file as a plan has it."""
        rows = int(self.rows[position])
        times = int(self.first_time[position]), int(self.last_time[position])
        size = int(self.size[position])
        return InputFile(str(self.path[position]), "", size, None if rows == UNKNOWN else rows, -1, *times)


def groups_of(files: Candidates, policy: TierPolicy, most_bytes: int) -> Iterator[FileGroup]:
    """The groups to rewrite, each of one partition; pure.

    Args:
        files: files that may be merged.
        policy: when to merge.
        most_bytes: bytes after which a group takes no further run.
    """
    for partition, positions in files.partitions():
        columns = files.size, files.first_time, files.last_time, files.tier
        runs = merges(SmallFiles(*(column[positions] for column in columns)), policy)
        taken: list[MergedRun] = []
        size = count = 0
        for run in runs:
            if taken and (size >= most_bytes or count + len(run.positions) > MAX_FILES_PER_GROUP):
                yield _group(files, partition, positions, taken)
                taken, size, count = [], 0, 0
            run = replace(run, positions=run.positions[:MAX_FILES_PER_GROUP])
            taken.append(run)
            size += int(files.size[positions[list(run.positions)]].sum())
            count += len(run.positions)
        if taken:
            yield _group(files, partition, positions, taken)


def _group(files: Candidates, partition: str, positions: Integers, merged: Sequence[MergedRun]) -> FileGroup:
    members = [[int(positions[position]) for position in run.positions] for run in merged]
    chosen = tuple(files.input_file(member) for of_run in members for member in of_run)
    runs = tuple(
        FileRun(tuple(str(files.path[member]) for member in of_run), run.tier)
        for of_run, run in zip(members, merged, strict=True)
    )
    where = f" of partition {partition}" if partition else ""
    note = f"{len(chosen)} small files{where} become {len(runs)}"
    return FileGroup(NAME, 0, f"FILES_{len(chosen)}_TO_{len(runs)}", chosen, note, runs=runs)


class _TierSelector(Selector):
    """Looks at the table once, gives the groups one by one, and looks again when all are rewritten."""

    def __init__(self, settings: SelectionSettings) -> None:
        super().__init__(settings)
        self._policy = policy_of(settings.options)
        self._version = -1
        self._groups: Iterator[FileGroup] = iter(())

    def select(self, snapshot: TableSnapshot) -> Selection:
        """See ``Selector.select``."""
        group = next(self._groups, None)
        if group is None and snapshot.version != self._version:
            self._version = snapshot.version
            candidates = Candidates.of(snapshot, self._policy.isolate_bytes)
            self._groups = groups_of(candidates, self._policy, self.settings.bytes_per_iter)
            group = next(self._groups, None)
        if group is None:
            return Selection(note=f"{NAME}: no partition has {self._policy.min_files} small files of like size")
        return Selection(group)
