"""SizeTieredClustering: merges small files of a table partition with files of like size, without an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from catalog.files.arrays import Integers, group_numbers, numbered, sums
from catalog.files.file_table import FileTable
from catalog.settings.strategy_options import (
    CLUSTERING_OPTIONS,
    ISOLATE_BYTES,
    MAX_TIME_RANGE,
    MIN_BYTES,
    MIN_FILES,
    TIER_RATIO,
)
from procedures.declare.option import option
from procedures.declare.signature import Parameter
from procedures.groups.cutter import MAX_FILES_PER_GROUP, Limits, pieces
from procedures.groups.group import Concatenate, FileRun, InputFile
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.selection.size_tiers import TierPolicy, merges

NAME = "SizeTieredClustering"


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
    options: ClassVar[tuple[Parameter, ...]] = tuple(map(option, CLUSTERING_OPTIONS))

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``.

        After a conflict, a group has files of one partition, so that a writer of one does not stop the others.
        """
        policy = policy_of(settings.options)
        yield from groups_of(table.files, policy, settings.bytes_per_iter, are_apart=table.run.is_contended)
        yield f"{NAME}: no partition has {policy.min_files} small files of like size"


def policy_of(options: Mapping[str, Any]) -> TierPolicy:
    """The policy that options ask for.

    Args:
        options: values of the strategy's options, all of them.
    """
    time_range = options[MAX_TIME_RANGE.name]
    return TierPolicy(
        options[MIN_FILES.name],
        options[MIN_BYTES.name],
        options[TIER_RATIO.name],
        options[ISOLATE_BYTES.name],
        None if time_range is None else int(time_range),
    )


def groups_of(
    files: FileTable, policy: TierPolicy, most_bytes: int, *, are_apart: bool = False
) -> Iterator[Concatenate]:
    """The groups to rewrite; pure.

    Args:
        files: the files that may be chosen.
        policy: when to merge.
        most_bytes: bytes after which a group takes no further run.
        are_apart: whether a group has files of one partition only.
    """
    merged: list[Integers] = []
    tiers: list[int] = []
    for positions in _partitions(files, policy):
        for run in merges(files, positions, policy):
            merged.append(np.array(run.positions[:MAX_FILES_PER_GROUP], np.int64))
            tiers.append(run.tier)
    partition = [str(files.partition[run[0]]) if are_apart else "" for run in merged]
    for _, members in groupby(range(len(merged)), key=lambda n: partition[n]):
        numbers = list(members)
        size = np.array([files.size[merged[n]].sum() for n in numbers], np.int64)
        counts = np.array([len(merged[n]) for n in numbers], np.int64)
        for first, end in pieces(size, Limits(most_bytes), crossing=True, files=counts):
            yield _group(files, [(merged[n], tiers[n]) for n in numbers[first:end]])


def _partitions(files: FileTable, policy: TierPolicy) -> Iterator[Integers]:
    """Positions of the files that may be merged, by time and path, of each partition with a tier that may qualify."""
    positions = np.flatnonzero(
        (files.revision == 0) & (files.deletion_vector == "") & (files.size < policy.isolate_bytes)
    )
    partition, partitions = numbered(files.partition[positions])
    tiers = np.maximum(policy.tiers(files.size[positions]), files.tier[positions])
    of_tier, count = group_numbers(partition, tiers)
    members = np.bincount(of_tier, minlength=count)
    qualifies = members >= policy.min_files
    if policy.min_bytes is not None:
        qualifies |= (members > 1) & (sums(of_tier, count, files.size[positions]) >= policy.min_bytes)
    may_merge = np.zeros(len(partitions), np.bool_)
    may_merge[partition[qualifies[of_tier] & (tiers <= policy.top)]] = True
    kept = may_merge[partition]
    positions, partition = positions[kept], partition[kept]
    # Files are in the order of their paths.
    order = np.lexsort((files.first_time[positions], partition))
    ends = np.flatnonzero(np.diff(partition[order])) + 1
    yield from (part for part in np.split(positions[order], ends) if len(part))


def _group(files: FileTable, merged: Sequence[tuple[Integers, int]]) -> Concatenate:
    chosen = np.concatenate([positions for positions, _ in merged])
    runs = tuple(FileRun(tuple(files.path[positions].tolist()), tier) for positions, tier in merged)
    partitions = {str(files.partition[positions[0]]) for positions, _ in merged}
    first = str(files.partition[chosen[0]])
    where = (f" of partition {first}" if first else "") if len(partitions) == 1 else f" of {len(partitions)} partitions"
    note = f"{len(chosen)} small files{where} become {len(runs)}"
    reason = f"FILES_{len(chosen)}_TO_{len(runs)}"
    return Concatenate(NAME, 0, reason, InputFile.of(files, chosen), note, runs=runs)
